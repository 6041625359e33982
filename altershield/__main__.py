from altershield.commands import main

main()
