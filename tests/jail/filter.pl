# PRCTL RULES COMMAND: the command in a process in which the named system calls fail, as on a kernel that lacks them.
# A rule is NUMBER or NUMBER:ARGUMENT:VALUE (the low 32 bits of that argument are VALUE) or NUMBER:ARGUMENT&BITS (it has
# one of these bits), each with =ERRNO behind it. Signals keep their default actions, so that one may come at any moment.
use strict;
my ($prctl, $rules, @argv) = @ARGV;
sub step { pack('SCCL', @_) }
my $program = '';
for my $rule (split /,/, $rules) {
    my ($number, $argument, $how, $value, $errno) = $rule =~ /^(\d+)(?::(\d)([:&])(\d+))?=(\d+)$/ or die "rule: $rule";
    my $refuse = step(0x06, 0, 0, 0x00050000 | $errno);
    my $test = '';
    if (defined $argument) {
        $test = step(0x20, 0, 0, 16 + 8 * $argument)
            . ($how eq ':' ? step(0x15, 0, 1, $value) : step(0x45, 0, 1, $value));
    }
    $program .= step(0x20, 0, 0, 0) . step(0x15, 0, length($test . $refuse) / 8, $number) . $test . $refuse;
}
$program .= step(0x06, 0, 0, 0x7fff0000);
my $fprog = pack('Sx![P]P', length($program) / 8, $program);
syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
syscall($prctl, 22, 2, $fprog, 0, 0) == 0 or die "filter: $!";
exec { $argv[0] } @argv or die "exec: $!";
