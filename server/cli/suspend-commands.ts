// `skerry suspend`, `skerry resume` and `skerry refresh`: their options and help.
import type { Command } from '@commander-js/extra-typings'
import { collect, examples, isGiven, output, projectOf, projectOption } from './command-options.ts'
import type { Context } from './context.ts'

const OF_CLUSTER = 'only in this cluster; without names and -l: all services in it; may be repeated'
const OF_LABELS = 'services of the project that have these labels: team=web'

const SUSPEND_HELP = `
Clusters that are offline hear of it when they are back. New commits are rendered and wait. Applying the service again changes nothing.
\`skerry describe service NAME\` shows who suspended it, when and why, and whether the agents have confirmed it.
Exit codes: 0 done, or it was suspended already; 1 it did not work, or no such service or cluster; 2 invalid arguments.`

const RESUME_HELP = `
A suspension is lifted as it was ordered: --all lifts that of everything; those of single services and clusters stay, and are listed.
Exit codes: 0 done, or nothing was suspended; 1 it did not work; 2 invalid arguments.`

export function addSuspendCommands(program: Command, context: Context): void {
  program
    .command('suspend')
    .description('leave services as they are: nothing is applied, corrected, pruned or removed until they are resumed')
    .argument('[services...]', 'names')
    .addOption(projectOption())
    .option('-l, --selector <labels>', OF_LABELS)
    .option('-A, --all-projects', 'with -l: of all projects')
    .option('--cluster <name>', OF_CLUSTER, collect)
    .option('--all', 'all services of all clusters')
    .option('--reason <text>', 'why; everybody who looks at the service reads it')
    .option('--dry-run', 'say what would be suspended')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry suspend web --reason "migration of the database"',
        'skerry suspend -l team=web --cluster ship-7 --reason harbour',
        'skerry suspend --cluster ship-7 --reason "new switches"',
        'skerry suspend --all --reason "incident 42" && skerry get suspensions',
      ),
    )
    .addHelpText('after', SUSPEND_HELP)
    .action(async (services, { cluster = [], ...options }, command) => {
      const isProjectGiven = isGiven(command)
      const { suspend } = await import('./suspend.ts')
      return suspend(context, services, projectOf(context, { cluster, isProjectGiven, ...options }, isProjectGiven))
    })

  program
    .command('resume')
    .description('lift a suspension: what waited goes on')
    .argument('[services...]', 'names')
    .addOption(projectOption())
    .option('-l, --selector <labels>', OF_LABELS)
    .option('-A, --all-projects', 'with -l: of all projects')
    .option('--cluster <name>', OF_CLUSTER, collect)
    .option('--all', 'the suspension of all services of all clusters')
    .option('--reason <text>', 'why; it is in the event')
    .option('--dry-run', 'say what would be resumed')
    .addOption(output())
    .addHelpText('before', examples('skerry resume web', 'skerry resume --cluster ship-7', 'skerry get suspensions && skerry resume --all'))
    .addHelpText('after', RESUME_HELP)
    .action(async (services, { cluster = [], ...options }, command) => {
      const isProjectGiven = isGiven(command)
      const { resume } = await import('./suspend.ts')
      return resume(context, services, projectOf(context, { cluster, isProjectGiven, ...options }, isProjectGiven))
    })

  program
    .command('refresh')
    .description('read a repository now instead of at its next poll; waits until it was read')
    .argument('<kind>', 'repository, or repository/name')
    .argument('[name]')
    .addOption(projectOption())
    .option('--no-wait', 'do not wait until it was read')
    .option('--timeout <duration>', 'how long to wait', '60s')
    .addOption(output())
    .addHelpText('before', examples('skerry refresh repository apps', 'skerry refresh repo/apps --no-wait'))
    .addHelpText(
      'after',
      '\nExit codes: 0 it was read, or --no-wait was given; 1 it could not be read, or not in time; 2 invalid arguments.',
    )
    .action(async (kind, name, options, command) => {
      const { refresh } = await import('./refresh.ts')
      return refresh(context, kind, name, projectOf(context, options, isGiven(command)))
    })
}
