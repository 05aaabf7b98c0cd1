// The command `config`: the contexts file, which holds servers with their credentials. No server is asked.
import type { Command } from '@commander-js/extra-typings'
import { examples, output } from '../command-options.ts'
import type { Context } from '../context.ts'

export function addConfigCommands(program: Command, context: Context): void {
  const verbs = () => import('./config-verbs.ts')
  const config = program
    .command('config')
    .description('manage contexts: named servers with their credentials')
    .addHelpText(
      'before',
      examples(
        'skerry config set-context prod --server https://skerry.example.com --token-file token',
        'skerry config get-contexts',
        'skerry config use-context prod',
      ),
    )
    .addHelpText(
      'after',
      '\nThe file is $XDG_CONFIG_HOME/skerry/config.yaml, else ~/.config/skerry/config.yaml. Only its user may read it.',
    )
  config
    .command('get-contexts')
    .description('list the contexts; * marks the current one')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText('before', examples('skerry config get-contexts', 'skerry config get-contexts -o name'))
    .action(async (options) => (await verbs()).getContexts(context, options))
  config
    .command('current-context')
    .description('show the name of the current context')
    .addHelpText('before', examples('skerry config current-context'))
    .action(async () => (await verbs()).currentContext(context))
  config
    .command('use-context')
    .description('make a context the current one')
    .argument('<name>')
    .addHelpText('before', examples('skerry config use-context prod'))
    .action(async (name) => (await verbs()).useContext(context, name))
  config
    .command('set-context')
    .description('create a context, or change the named fields of one; the first one becomes current')
    .argument('<name>')
    .option('--token-file <file>', 'file with the API token, or - for stdin')
    .option('-p, --project <name>', 'default project of commands')
    .option('--no-ca', 'trust the public certificate authorities again')
    .option('--use', 'make it the current context')
    .addHelpText(
      'before',
      examples(
        'skerry config set-context prod --server https://skerry.example.com --token-file token --use',
        'skerry config set-context ship --server https://10.0.0.8:8443 --server-ca ca.pem -p fleet',
        'skerry token create ci | skerry config set-context ci --server https://skerry.example.com --token-file -',
      ),
    )
    .addHelpText(
      'after',
      '\nSet the server and its certificate authority with --server and --server-ca. The certificates are copied into the contexts file.',
    )
    .action(async (name, options) => (await verbs()).setContext(context, name, options, program.opts()))
  config
    .command('delete-context')
    .description('delete a context and the credentials in it')
    .argument('<name>')
    .addHelpText('before', examples('skerry config delete-context old'))
    .action(async (name) => (await verbs()).deleteContext(context, name))
  config
    .command('view')
    .description('show the contexts file; tokens are hidden')
    .option('--raw', 'show tokens')
    .addOption(output())
    .addHelpText('before', examples('skerry config view', 'skerry config view --raw -o json'))
    .action(async (options) => (await verbs()).viewConfig(context, options))
}
