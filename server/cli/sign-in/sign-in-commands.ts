// The commands `login`, `logout`, `whoami` and `session`.
import type { Command } from '@commander-js/extra-typings'
import { examples, output } from '../command-options.ts'
import type { Context } from '../context.ts'
import type { ConnectionFlags } from '../contexts/connection.ts'

export function addSignInCommands(program: Command, context: Context): void {
  const verbs = () => import('./login.ts')
  const sessions = () => import('./sessions.ts')
  program
    .command('login')
    .description('sign in through an identity provider; the login is saved in a context and renewed automatically')
    .option('--provider <name>', 'identity provider; required if the server has several')
    .option('--device', 'sign in with a code, in a browser on any machine')
    .option('--jwt-file <file>', 'exchange the JWT in this file (for pipelines); the file is read again when the token expires')
    .option('--no-browser', 'print the address to open, and do not start a browser')
    .addHelpText(
      'before',
      examples(
        'skerry login --server https://skerry.example.com',
        'skerry login --device',
        'skerry login --server https://skerry.example.com --jwt-file /var/run/secrets/skerry/token',
      ),
    )
    .addHelpText('after', '\nSKERRY_TOKEN and --token take precedence over a login.')
    .action(async (options, command) => (await verbs()).login(context, command.optsWithGlobals() as ConnectionFlags, options))
  program
    .command('logout')
    .description('sign out: end the session on the server and delete the saved login')
    .addHelpText('before', examples('skerry logout', 'skerry logout --context prod'))
    .action(async () => (await verbs()).logout(context))
  program
    .command('whoami')
    .description('show the caller as the server identifies it')
    .addOption(output())
    .addHelpText('before', examples('skerry whoami', 'skerry whoami -o json'))
    .action(async (options) => (await verbs()).whoami(context, options))

  const session = program
    .command('session')
    .description('manage sessions of people and pipelines')
    .addHelpText('before', examples('skerry session list', 'skerry session revoke s-0123456789abcdef'))
  session
    .command('list')
    .description('list your sessions; with the right to read API tokens, all sessions')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText('before', examples('skerry session list', 'skerry session list -o wide'))
    .action(async (options) => (await sessions()).listSessions(context, options))
  session
    .command('revoke')
    .description('end a session; its requests are refused at once')
    .argument('<id>')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry session revoke s-0123456789abcdef'))
    .action(async (id, options) => (await sessions()).revokeSession(context, id, options))
}
