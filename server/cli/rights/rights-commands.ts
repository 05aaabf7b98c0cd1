// The command `auth`.
import { type Command, Option } from '@commander-js/extra-typings'
import { ACCESS_KINDS, ACCESS_VERBS } from '../../../shared/model/access-words.ts'
import { collect, examples } from '../command-options.ts'
import type { Context } from '../context.ts'

const verbs = () => import('./auth.ts')
const LINE_MAX = 110

const RIGHTS_HELP = `
VERB   ${listed(ACCESS_VERBS)}
KIND   ${listed(ACCESS_KINDS)}`

/** `a, b or c` in lines below each other. */
function listed(words: readonly string[]): string {
  const lines = ['']
  for (const [index, word] of words.entries()) {
    const text = `${word}${index < words.length - 2 ? ',' : index === words.length - 2 ? ' or' : ''}`
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + text.length > LINE_MAX) lines.push(text)
    else lines[lines.length - 1] = line === '' ? text : `${line} ${text}`
  }
  return lines.join('\n       ')
}

export function addAuthCommands(program: Command, context: Context): void {
  const json = () => new Option('-o, --output <form>', 'output format').choices(['json'] as const)
  const auth = program
    .command('auth')
    .description('check the rights of a caller, and the role bindings that grant them')
    .addHelpText(
      'before',
      examples('skerry auth can-i write service/web -p shop', 'skerry auth who-can confirm service -p shop', 'skerry auth whoami'),
    )
  auth
    .command('can-i')
    .description('check whether you or another caller has a right; exit code 0 yes, 1 no')
    .argument('<verb>')
    .argument('<kind>', 'kind, or kind/name')
    .option('-p, --project <name>', 'project of the object; default: the whole fleet')
    .option('--cluster <name>', 'only in this cluster')
    .option('--as <user>', 'check for this user: a verified e-mail address, or provider:subject')
    .option('--as-group <group>', 'check for a member of this group: provider:group; may be repeated', collect)
    .option('--as-token <name>', 'check for API tokens of this name')
    .addOption(json())
    .addHelpText(
      'before',
      examples(
        'skerry auth can-i write service/web -p shop',
        'skerry auth can-i suspend service/web -p shop --cluster ship-7',
        'skerry auth can-i confirm service -p shop --as ada@example.com --as-group corp:operators',
      ),
    )
    .addHelpText('after', RIGHTS_HELP)
    .action(async (verb, kind, options) => context.exit(await (await verbs()).canI(context, verb, kind, options)))
  auth
    .command('who-can')
    .description('list users, groups and API tokens that have a right, each with the role binding that grants it')
    .argument('<verb>')
    .argument('<kind>', 'kind, or kind/name')
    .option('-p, --project <name>', 'project of the object; default: the whole fleet')
    .option('--cluster <name>', 'only in this cluster')
    .addOption(json())
    .addHelpText('before', examples('skerry auth who-can confirm service/web -p shop', 'skerry auth who-can server-key server'))
    .addHelpText('after', RIGHTS_HELP)
    .action(async (verb, kind, options) => (await verbs()).whoCan(context, verb, kind, options))
  auth
    .command('whoami')
    .description('show the caller as the server identifies it, with its roles and the bindings that grant them')
    .addOption(json())
    .addHelpText('before', examples('skerry auth whoami', 'skerry auth whoami -o json'))
    .action(async (options) => (await verbs()).authWhoami(context, options))
}
