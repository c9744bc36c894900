# PRCTL RULES COMMAND: the command in a process in which the named system calls fail, as on a kernel that lacks them.
# A rule is NUMBER=ERRNO, with conditions between them that must all be met: :ARGUMENT~VALUE (the low 32 bits of that
# argument are VALUE), :ARGUMENT!VALUE (they are not) and :ARGUMENT&BITS (it has one of these bits). Run with -T, so that
# the environment of the command means nothing here; signals keep their default actions, and may come at any moment.
use strict;
my ($prctl, $rules, @argv) = @ARGV;
sub step { pack('SCCL', @_) }
my $program = '';
for my $rule (split /,/, $rules) {
    my ($number, $conditions, $errno) = $rule =~ /^(\d+)((?::\d[~&!]\d+)*)=(\d+)$/ or die "rule: $rule";
    my $rest = step(0x06, 0, 0, 0x00050000 | $errno);
    for my $condition (reverse grep { length } split /:/, $conditions) {
        my ($argument, $how, $value) = $condition =~ /^(\d)([~&!])(\d+)$/ or die "condition: $condition";
        my $past = length($rest) / 8;
        my ($code, $met, $not) = $how eq '&' ? (0x45, 0, $past) : $how eq '!' ? (0x15, $past, 0) : (0x15, 0, $past);
        $rest = step(0x20, 0, 0, 16 + 8 * $argument) . step($code, $met, $not, $value) . $rest;
    }
    $program .= step(0x20, 0, 0, 0) . step(0x15, 0, length($rest) / 8, $number) . $rest;
}
$program .= step(0x06, 0, 0, 0x7fff0000);
my $fprog = pack('Sx![P]P', length($program) / 8, $program);
syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
syscall($prctl, 22, 2, $fprog, 0, 0) == 0 or die "filter: $!";
exec { $argv[0] } @argv or die "exec: $!";
