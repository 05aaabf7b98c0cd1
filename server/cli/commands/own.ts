// The commands about this program: version, explain.
import { Argument, type Command } from '@commander-js/extra-typings'
import { examples, output } from '../command-options.ts'
import { COMPLETION_SCRIPTS, SHELLS } from '../completion/scripts.ts'
import type { Context } from '../context.ts'

export function addOwnCommands(program: Command, context: Context): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText(
      'before',
      examples('skerry completion zsh > ~/.zfunc/_skerry', 'source <(skerry completion bash)', 'skerry completion fish | source'),
    )
    .addHelpText(
      'after',
      '\nNames of services, clusters and others are read from the server and cached for ten seconds in $XDG_CACHE_HOME/skerry.\n' +
        'Put the line into ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish.',
    )
    .action((shell) => void context.io.stdout.write(COMPLETION_SCRIPTS[shell]))

  program
    .command('explain')
    .argument('[field]', 'kind or field, such as service or service.spec.render.helm; default: list all kinds')
    .option('-R, --recursive', 'show all fields below as a tree')
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
