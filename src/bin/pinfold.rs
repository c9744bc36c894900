fn main() -> std::process::ExitCode {
    pinfold::main()
}
