from contend.cli.main import main

main()
