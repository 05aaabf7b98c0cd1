// The commands about this program: version, explain.
import type { Command } from '@commander-js/extra-typings'
import { examples, output } from '../command-options.ts'
import type { Context } from '../context.ts'

export function addOwnCommands(program: Command, context: Context): void {
  program
    .command('explain')
    .argument('[field]', 'service, service.spec.render.helm; without it: the kinds that there are')
    .option('-R, --recursive', 'the tree of all fields below')
    .addHelpText(
      'before',
      examples('skerry explain', 'skerry explain service.spec', 'skerry explain service.spec.render.helm', 'skerry explain config -R'),
    )
    .action(async (field, options) => {
      const { explainField } = await import('../field-reference.ts')
      explainField(context.io, field, options)
    })

  program
    .command('version')
    .option('--client', 'only the version of this program')
    .addOption(output())
    .addHelpText('before', examples('skerry version', 'skerry version --client -o json'))
    .action(async (options) => {
      const { version } = await import('../version.ts')
      const known = options.client !== true && (context.connection().token ?? '') !== ''
      await version(context, await context.ownVersion(), { ...options, known })
    })
}
