"""The command line `veil`. `main` puts the commands together; each group of commands has a module.

Modules that `main` imports import nothing heavy at their top, so that `veil --help` starts quickly.

    main                                    the command `veil`, and the small commands `post`, `demo` and `reproduce`
    plan, simulate, reports, sql, inspect   studies, reports and results in files
    device, surveys, admin, parties, peos   devices, collectors and shuffles
    options, input, output, results         what commands share: options, files in, the console, results out
    values, table_folders, trials           people's values, folders of tables, and simulated devices
    demo, crowd, reproduce, sql_shell       what single commands run
"""
