// The command `why`: its arguments, options and help.
import type { Command } from '@commander-js/extra-typings'
import { examples, isGiven, output, projectOf, projectOption } from '../command-options.ts'
import type { Context } from '../context.ts'

export function addWhyCommand(program: Command, context: Context): void {
  program
    .command('why')
    .argument('<service>', 'name of a service, service/name, or an object: kind/namespace/name with --cluster')
    .addOption(projectOption())
    .option('--cluster <name>', 'only in this cluster')
    .option('--no-log', 'do not ask the cluster for the last log lines of the container that the first cause names')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry why web',
        'skerry why web --cluster ship-7',
        'skerry why deployment/shop/web --cluster ship-7',
        'skerry why web -p shop -o json',
        "skerry why web -o jsonpath='{.causes[0].cause}'",
      ),
    )
    .addHelpText(
      'after',
      '\nThe most likely cause is first. The facts are those that agents reported last. Only the last log lines are asked of\n' +
        'the cluster; they need the right logs:read.\n' +
        'Exit codes: 0 nothing is wrong; 1 a cause was found, or it failed; 2 invalid arguments.',
    )
    .action(async (service, options, command) => {
      const { why } = await import('../why.ts')
      await why(context, service, projectOf(context, options, isGiven(command)))
    })
}
