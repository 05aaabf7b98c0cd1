// `skerry suspend`, `skerry resume` and `skerry refresh`: their options and help.
import type { Command } from '@commander-js/extra-typings'
import { collect, examples, isGiven, output, projectOf, projectOption } from './command-options.ts'
import type { Context } from './context.ts'

const OF_CLUSTER = 'only in this cluster; without names and -l: all services in it; may be repeated'
const OF_LABELS = 'services of the project with these labels: team=web'

const SUSPEND_HELP = `
Offline clusters receive the suspension when they reconnect. New commits are rendered but not applied. Applying a service again does not resume it.
\`skerry describe service NAME\` shows who suspended it, when and why, and whether the agents have confirmed it.
Exit codes: 0 success or already suspended; 1 failure or not found; 2 invalid arguments.`

const RESUME_HELP = `
Each suspension is resumed in the form in which it was made. --all does not resume suspensions of single services and clusters; it lists them.
Exit codes: 0 success or nothing suspended; 1 failure; 2 invalid arguments.`

export function addSuspendCommands(program: Command, context: Context): void {
  program
    .command('suspend')
    .description('suspend services: agents apply, correct, prune and remove nothing until they are resumed')
    .argument('[services...]', 'names')
    .addOption(projectOption())
    .option('-l, --selector <labels>', OF_LABELS)
    .option('-A, --all-projects', 'with -l: services of all projects')
    .option('--cluster <name>', OF_CLUSTER, collect)
    .option('--all', 'all services in all clusters')
    .option('--reason <text>', 'reason, shown to everyone who reads the service')
    .option('--dry-run', 'show the services that would be suspended')
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
    .description('resume suspended services; pending changes are applied')
    .argument('[services...]', 'names')
    .addOption(projectOption())
    .option('-l, --selector <labels>', OF_LABELS)
    .option('-A, --all-projects', 'with -l: services of all projects')
    .option('--cluster <name>', OF_CLUSTER, collect)
    .option('--all', 'resume the suspension of all services in all clusters')
    .option('--reason <text>', 'reason, shown in the event')
    .option('--dry-run', 'show the services that would be resumed')
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
    .description('read a repository now instead of at its next poll, and wait for the result')
    .argument('<kind>', 'repository, or repository/name')
    .argument('[name]')
    .addOption(projectOption())
    .option('--no-wait', 'do not wait for the result')
    .option('--timeout <duration>', 'maximum time to wait', '60s')
    .addOption(output())
    .addHelpText('before', examples('skerry refresh repository apps', 'skerry refresh repo/apps --no-wait'))
    .addHelpText('after', '\nExit codes: 0 read, or --no-wait was given; 1 cannot be read, or timed out; 2 invalid arguments.')
    .action(async (kind, name, options, command) => {
      const { refresh } = await import('./refresh.ts')
      return refresh(context, kind, name, projectOf(context, options, isGiven(command)))
    })
}
