// The commands `token` and `join-token`.
import { type Command, Option } from '@commander-js/extra-typings'
import { TOKEN_ROLES } from '../../shared/model/access.ts'
import { DEFAULT_PROJECT } from '../../shared/model/resources.ts'
import { collect, examples, output, wholeNumber } from './command-options.ts'
import type { Context } from './context.ts'
import { remove } from './delete.ts'
import { get } from './get.ts'
import { createJoinToken } from './join-token.ts'
import { isAgentId, listAgentCredentials, revokeAgent } from './sign-in/agent-credentials.ts'
import { createToken, exchangeToken, revokeToken } from './token.ts'

export function addTokenCommands(program: Command, context: Context): void {
  const token = program
    .command('token')
    .description('manage API tokens of people and programs')
    .addHelpText(
      'before',
      examples('skerry token create ci --role operator --expires 30d', 'skerry token list', 'skerry token revoke t-1a2b3c4d'),
    )
  token
    .command('create')
    .description('create an API token; it is shown only once')
    .argument('<name>', 'name of the person or program that uses it; shown in events and confirmations')
    .addOption(
      new Option('--role <role>', 'built-in role, or none for role bindings only; admin is fleet-admin')
        .choices(TOKEN_ROLES)
        .default('viewer' as const),
    )
    .option('--project <name>', 'limit the token to this project; may be repeated', collect)
    .option('--expires <duration>', 'lifetime: 12h, 30d, or never', '90d')
    .addOption(output())
    .addHelpText(
      'before',
      examples('skerry token create alice --role admin --expires never', 'SKERRY_TOKEN=$(skerry token create ci --role operator)'),
    )
    .action((name, options) => createToken(context, name, options))
  token
    .command('list')
    .description('list API tokens, with role, expiry and last use')
    .option('--agents', 'list the credentials of agents instead')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText('before', examples('skerry token list', 'skerry token list --agents', 'skerry token list -o json'))
    .action(({ agents, ...options }) =>
      agents === true
        ? listAgentCredentials(context, options)
        : get(context, 'tokens', undefined, { ...options, project: DEFAULT_PROJECT }),
    )
  token
    .command('revoke')
    .description('revoke an API token or the credential of an agent; its requests are refused at once')
    .argument('<id>')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry token revoke t-1a2b3c4d', 'skerry token revoke a-0123456789abcdef'))
    .action((id, options) => (isAgentId(id) ? revokeAgent(context, id, options) : revokeToken(context, id, options)))
  token
    .command('rotate')
    .alias('exchange')
    .description('replace an API token with a new one, which ends the old one; a first admin token gets a successor that does not expire')
    .option('--token-file <file>', 'file with the token to replace, such as the first admin token; default: SKERRY_TOKEN')
    .addHelpText('before', examples('skerry token exchange --token-file data/admin-token', 'export SKERRY_TOKEN=$(skerry token exchange)'))
    .action((options) => exchangeToken(context, options))

  const joinToken = program
    .command('join-token')
    .description('manage tokens with which new clusters join')
    .addHelpText('before', examples('skerry join-token create --label env=prod', 'skerry join-token list'))
  joinToken
    .command('create')
    .description('create a join token; it is shown only once')
    .option('--expires <duration>', 'lifetime: 30m, 12h, 7d', '1h')
    .option('--uses <count>', 'number of clusters that may join with the token', wholeNumber(10_000), 1)
    .option('--label <key=value>', 'label for each cluster that joins with the token; may be repeated', collect)
    .addOption(output())
    .addHelpText(
      'before',
      examples('skerry join-token create --label env=prod', 'TOKEN=$(skerry join-token create --uses 20 --expires 12h)'),
    )
    .action(({ label = [], ...options }) => createJoinToken(context, { label, ...options }))
  joinToken
    .command('list')
    .description('list join tokens, without their secrets')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText('before', examples('skerry join-token list', 'skerry join-token list -o json'))
    .action((options) => get(context, 'join-tokens', undefined, { ...options, project: DEFAULT_PROJECT }))
  joinToken
    .command('delete')
    .description('delete a join token; clusters that joined with it stay')
    .argument('<id>')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry join-token delete k7f2qx'))
    .action((id, options) => remove(context, 'join-tokens', [id], { ...options, project: DEFAULT_PROJECT }))
}
