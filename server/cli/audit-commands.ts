// The command `audit`.
import { type Command, Option } from '@commander-js/extra-typings'
import { AUDIT_RESULTS } from '../../shared/model/audit-words.ts'
import { examples, output, wholeNumber } from './command-options.ts'
import type { Context } from './context.ts'

const ENTRIES_MAX = 100_000

const VERIFY_HELP = `
Each entry contains the hash of the entry before it, and the server signs the end of the log. Store the printed end in another place:
\`skerry audit verify --expect END\` later proves that no entry before it was changed or removed.
Exit codes: 0 the log is intact, 1 it is broken or cannot be read, 2 invalid arguments.`

export function addAuditCommands(program: Command, context: Context): void {
  const audit = program
    .command('audit')
    .description('list, verify and export the audit log')
    .addHelpText('before', examples('skerry audit list --since 24h', 'skerry audit verify', 'skerry audit export > audit.jsonl'))
  audit
    .command('list')
    .description('list actions with their actors, newest first')
    .option('--since <time>', 'only since this time: 24h, or 2026-01-31T08:00:00Z')
    .option('--until <time>', 'only before this time')
    .option('--actor <name>', 'only of this person, token, cluster or "server"')
    .option('--verb <verb>', 'only this verb, such as create, update, delete, confirm, sync or sign-in')
    .option('--kind <kind>', 'only of objects of this kind')
    .option('-p, --project <name>', 'only of this project')
    .option('--name <name>', 'only of objects of this name')
    .option('--cluster <name>', 'only of this cluster')
    .option('--object <object>', 'with --cluster: events and field managers of this object: kind/namespace/name')
    .addOption(new Option('--result <result>', 'only with this result').choices(AUDIT_RESULTS))
    .option('--limit <count>', 'maximum number of entries, newest first', wholeNumber(ENTRIES_MAX), 50)
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry audit list --since 24h',
        'skerry audit list --actor ada --result denied',
        'skerry audit list --kind Service --name web -p shop -o json',
      ),
    )
    .action(async (options) => (await import('./audit.ts')).listAudit(context, options))
  audit
    .command('verify')
    .description('verify the log of the server, or an export without a server, and name the first broken entry')
    .argument('[file]', 'file of an export, or - for stdin')
    .option('--server-key <fingerprint>', 'fingerprint of the required signing key')
    .option('--expect <end>', 'SEQ:HASH that an earlier verification printed')
    .addOption(new Option('-o, --output <form>', 'output format').choices(['json'] as const))
    .addHelpText('before', examples('skerry audit verify', 'skerry audit verify audit.jsonl --server-key 0123456789abcdef0123456789abcdef'))
    .addHelpText('after', VERIFY_HELP)
    .action(async (file, options) => context.exit(await (await import('./audit.ts')).verifyAuditLog(context, file, options)))
  audit
    .command('export')
    .description('export the whole log as JSON lines that can be verified without a server')
    .addHelpText(
      'before',
      examples('skerry audit export > audit.jsonl', 'skerry audit export | jq -r "select(.type == \\"entry\\").entry.verb"'),
    )
    .action(async () => (await import('./audit.ts')).exportAudit(context))
}
