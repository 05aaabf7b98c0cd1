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
      '\nThe most likely cause is first. The facts are those that agents reported last; nothing is asked of a cluster.\n' +
        'Exit codes: 0 nothing is wrong; 1 a cause was found, or it failed; 2 invalid arguments.',
    )
    .action(async (service, options, command) => {
      const { why } = await import('../why.ts')
      await why(context, service, projectOf(context, options, isGiven(command)))
    })
}
