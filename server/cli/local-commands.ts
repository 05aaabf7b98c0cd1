// Verbs that work on the data folder of a server, on its own machine: the server itself, backups, the doctor. What they
// do is handed in; here are their words.
import type { Command } from '@commander-js/extra-typings'
import { Option } from '@commander-js/extra-typings'
import { addOptions } from '../../shared/adapters/option-flags.ts'
import type { OptionTable } from '../../shared/runtime/options.ts'
import { examples } from './command-options.ts'
import type { Context } from './context.ts'

type Flags = Record<string, string | boolean | undefined>

export interface LocalCommand {
  table: OptionTable
  /** Resolves with the exit code. `argument`: what was named without a flag. */
  run(flags: Flags, argument: string): Promise<number>
}

export interface PreviewCommands {
  /** On this machine, of files that are here. */
  render: LocalCommand
  /** Base64 of an archive of a folder. */
  pack(folder: string): Promise<string>
}

export interface LocalCommands extends PreviewCommands {
  /** Runs until it is stopped. */
  server: LocalCommand
  dev: LocalCommand
  doctor: LocalCommand
  adminToken: LocalCommand
  backup: { create: LocalCommand; list: LocalCommand; verify: LocalCommand; restore: LocalCommand }
}

export function addLocalCommands(program: Command, context: Context, { server, dev, doctor, adminToken, backup }: LocalCommands): void {
  const run = async (command: LocalCommand, flags: Flags, argument = '') => context.exit(await command.run(flags, argument))

  addOptions(
    program
      .command('server')
      .description('run the server')
      .addHelpText(
        'before',
        examples(
          'skerry server --data ./data',
          'skerry server --listen 0.0.0.0:8080 --external-url https://skerry.example.com --source-addresses 10.0.0.0/8',
          'skerry server --store postgres://skerry@db.example.com/skerry',
        ),
      )
      .action((flags) => run(server, flags)),
    server.table,
  )

  addOptions(
    program
      .command('dev')
      .description('run a server with temporary data to look at, with --demo-data over a simulated fleet')
      .addHelpText('before', examples('skerry dev --demo-data', 'skerry dev --demo-data --clusters 2000 --listen 127.0.0.1:9000'))
      .addHelpText('after', '\nPrints a link that opens the dashboard. Ctrl-C stops the server and removes its data.')
      .action((flags) => run(dev, flags)),
    dev.table,
  )

  addOptions(
    program
      .command('admin-token')
      .description('create a short-lived admin token on the machine of the server (running or not), if nobody can sign in')
      .addHelpText('before', examples("skerry admin-token --data /var/lib/skerry --reason 'identity provider is down'"))
      .action((flags) => run(adminToken, flags)),
    adminToken.table,
  )

  const doctorCommand = program
    .command('doctor')
    .description('check the data folder of a server (running or not) and report problems with remedies; changes nothing')
    .addOption(new Option('-o, --output <form>', 'output format').choices(['json']))
    .addHelpText('before', examples('skerry doctor --data /var/lib/skerry', 'skerry doctor --data /var/lib/skerry -o json'))
    .addHelpText('after', '\nExit codes: 0 no problem, 1 problems found, 2 invalid arguments.')
    .action((flags) => run(doctor, flags))
  addOptions(doctorCommand, doctor.table)

  const backups = program
    .command('backup')
    .description('create, list, verify and restore backups of a server')
    .addHelpText(
      'before',
      examples(
        'skerry backup create --data /var/lib/skerry --to /backups/monday',
        'skerry backup create --data /var/lib/skerry --into s3://backups/skerry --recipients age1…',
        'skerry backup verify /backups/monday',
        'skerry backup restore /backups/monday --data /var/lib/skerry',
      ),
    )
  addOptions(
    backups
      .command('create')
      .description('back up fleet store, content and keys at one moment; the server may run')
      .addHelpText(
        'before',
        examples(
          'skerry backup create --data /var/lib/skerry --to /backups/monday',
          'skerry backup create --data /var/lib/skerry --into /backups --keep 7',
          "skerry backup create --data /var/lib/skerry --into 's3://backups/skerry?endpoint=https://s3.example.com' --recipients age1…",
        ),
      )
      .addHelpText(
        'after',
        '\n--to makes a folder. --into adds an archive to those of a folder or a bucket, reads it back, and removes the oldest ones.',
      )
      .action((flags) => run(backup.create, flags)),
    backup.create.table,
  )
  addOptions(
    backups
      .command('list')
      .description('list the archives of a folder or a bucket, oldest first')
      .argument('<place>')
      .addHelpText('before', examples('skerry backup list /backups', 'skerry backup list s3://backups/skerry'))
      .action((place, flags) => run(backup.list, flags, place)),
    backup.list.table,
  )
  addOptions(
    backups
      .command('verify')
      .description('check that a backup is complete; reads all of it')
      .argument('<backup>', 'folder, archive, or s3://BUCKET/PREFIX/ARCHIVE')
      .addHelpText(
        'before',
        examples(
          'skerry backup verify /backups/monday',
          'skerry backup verify s3://backups/skerry/skerry-20261124T030000Z.tar.zst.age --identity key.txt',
        ),
      )
      .action((from, flags) => run(backup.verify, flags, from)),
    backup.verify.table,
  )
  addOptions(
    backups
      .command('restore')
      .description('create a data folder from a backup; clusters keep what they have until `skerry restore confirm`')
      .argument('<backup>', 'folder, archive, or s3://BUCKET/PREFIX/ARCHIVE')
      .addHelpText(
        'before',
        examples(
          'skerry backup restore /backups/monday --data /var/lib/skerry',
          'skerry backup restore s3://backups/skerry/skerry-20261124T030000Z.tar.zst.age --identity key.txt --data /var/lib/skerry',
        ),
      )
      .action((from, flags) => run(backup.restore, flags, from)),
    backup.restore.table,
  )
}
