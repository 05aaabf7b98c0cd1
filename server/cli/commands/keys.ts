// The commands for the keys of a server and for one that was restored from a backup.
import { Argument, type Command } from '@commander-js/extra-typings'
import { examples, isGiven, output, projectOf, projectOption } from '../command-options.ts'
import type { Context } from '../context.ts'
import { ROTATED_KEYS } from '../outputs.ts'

export function addKeyCommands(program: Command, context: Context): void {
  const restore = program
    .command('restore')
    .addOption(output())
    .addHelpText('before', examples('skerry restore', 'skerry restore -o json', 'skerry restore confirm'))
    .action(async (options) => (await import('../restore.ts')).showRestore(context, options))
  restore
    .command('confirm')
    .description('show the plan of the restore and confirm it; the server then serves agents again, and nothing is deleted')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry restore confirm'))
    .action(async (options) => (await import('../restore.ts')).confirmRestore(context, options))

  const secrets = program.command('secrets').addHelpText('before', examples('skerry secrets status', 'skerry secrets seal --all'))
  secrets
    .command('status')
    .description('show whether rendered Secrets are sealed to their clusters, and the services that still have clear text')
    .addOption(output())
    .addHelpText('before', examples('skerry secrets status', 'skerry secrets status -o json'))
    .action(async (options) => (await import('../secrets.ts')).showSeal(context, options))
  secrets
    .command('seal')
    .description('seal rendered Secrets from now on, and remove what was written in clear before; upgrade all agents first')
    .option('--all', 'required: seal the rows of all services')
    .option('--new-key', 'seal with a new key, and destroy the earlier one when nothing is sealed with it')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry secrets seal --all', 'skerry secrets seal --all --new-key --yes'))
    .action(async (options) => (await import('../secrets.ts')).sealAll(context, options))
  secrets
    .command('rotate-key')
    .description('seal the secrets of all Configs anew, each Config under another data key, and destroy the earlier master key')
    .option('--no-wait', 'start it and do not wait')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry secrets rotate-key', 'skerry secrets rotate-key --yes --no-wait'))
    .action(async (options) => (await import('../secrets.ts')).rotateKeys(context, options))
  secrets
    .command('rotation')
    .description('show how far the newest rotation of the keys of secrets is')
    .addOption(output())
    .addHelpText('before', examples('skerry secrets rotation', 'skerry secrets rotation -o json'))
    .action(async (options) => (await import('../secrets.ts')).showRotation(context, options))

  program
    .command('webhook-secret')
    .addHelpText('before', examples('skerry webhook-secret create apps'))
    .command('create')
    .description('make another secret for the webhook of a repository, and show it once with what to enter in a forge')
    .addArgument(new Argument('<repository>', 'name of the repository'))
    .addOption(projectOption())
    .addHelpText('before', examples('skerry webhook-secret create apps'))
    .action(async (repository, options, command) => {
      const { project } = projectOf(context, options, isGiven(command))
      await (await import('../secrets.ts')).createWebhookSecret(context, repository, project)
    })

  const serverKey = program
    .command('server-key')
    .addHelpText('before', examples('skerry server-key list', 'skerry server-key rotate', 'skerry server-key revoke'))
  serverKey
    .command('rotate')
    .description('replace a key with a new one; agents follow automatically, and the old private key is destroyed')
    .addArgument(
      new Argument('[key]', 'signing, mac (sessions and webhooks) or secrets (of Configs)')
        .choices(ROTATED_KEYS)
        .default('signing' as const),
    )
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry server-key rotate', 'skerry server-key rotate mac', 'skerry server-key rotate secrets --yes'))
    .action(async (key, options) => (await import('../server-key.ts')).rotateServerKey(context, key, options))
  serverKey
    .command('revoke')
    .description('make agents refuse earlier signing keys, for example after one was stolen')
    .option('--before <fingerprint>', 'fingerprint of the oldest key to accept; default: the current signing key')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry server-key revoke', 'skerry server-key revoke --before 0123456789abcdef0123456789abcdef'))
    .action(async (options) => (await import('../server-key.ts')).revokeServerKeys(context, options))
  serverKey
    .command('list')
    .description('list the current and earlier signing keys')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText('before', examples('skerry server-key list', 'skerry server-key list -o json'))
    .action(async (options) => (await import('../server-key.ts')).listServerKeys(context, options))
}
