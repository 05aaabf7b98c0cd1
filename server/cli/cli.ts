// The program `skerry`: global options, help, exit codes. Exit codes: 0 success, 1 failure, 2 invalid arguments.
import { Command, CommanderError, type CommandUnknownOpts, Help } from '@commander-js/extra-typings'
import { examples, SERVER_DEFAULT } from './command-options.ts'
import type { Context } from './context.ts'
import type { Connection } from './contexts/connection.ts'
import { type CliIo, UsageError } from './io.ts'
import type { LocalCommands, PreviewCommands } from './local-commands.ts'
import { addReasons, reasonGiven } from './reasons.ts'
import { type CommandParts, OFFLINE_VERBS, VERB_GROUPS } from './verbs.ts'
import type { OwnVersion } from './version.ts'

export type CliDeps = {
  version(): Promise<OwnVersion>
  io: CliIo
} & (
  | {
      /** Loads much: called only for its verbs. */
      local(): Promise<LocalCommands>
    }
  | {
      /** The build for people's machines, which has no server. */
      client: PreviewCommands
    }
)

const EXIT_FAILURE = 1
const EXIT_USAGE = 2

export interface CommandLine {
  program: CommandUnknownOpts
  /** That of the command that ran last. */
  exitCode(): number
}

/** Every verb in place of one: documents and completion need them. */
export const ALL = Symbol('all verbs')

/** With the options and actions of one verb. Null means that names and descriptions of all. */
export async function createCommandLine(deps: CliDeps, typed: string | null | typeof ALL = ALL): Promise<CommandLine> {
  const { version, io } = deps
  let exitCode = 0
  const program: Command = new Command('skerry')
    .description('GitOps for fleets of Kubernetes clusters that are often offline.')
    .option('--server <url>', `address of the server, or unix:PATH (env: SKERRY_SERVER, default: the context, else ${SERVER_DEFAULT})`)
    .option(
      '--server-ca <file>',
      'PEM file of the certificate authority of the server, instead of the system authorities (env: SKERRY_SERVER_CA)',
    )
    .option('--token <token>', 'API token (env: SKERRY_TOKEN, which keeps the token out of `ps`)')
    .option('--context <name>', 'context to use (env: SKERRY_CONTEXT)')
    .addHelpText('before', examples('skerry get clusters', 'skerry apply -f fleet/', 'skerry describe service web', 'skerry confirm'))
    .addHelpText('after', '\nExit codes: 0 success, 1 failure, 2 invalid arguments.')
    .configureOutput({ writeOut: (text) => void io.stdout.write(text), writeErr: (text) => void io.stderr.write(text) })
    // Options and arguments are in the help of each verb.
    .configureHelp({ subcommandTerm: (command) => (command.parent === program ? command.name() : new Help().subcommandTerm(command)) })
    .showHelpAfterError('(see --help)')
    .exitOverride()
  let online: Pick<Context, 'client' | 'connection'> | null = null
  const needed = () => {
    if (online === null) throw new Error('this command does not use a server')
    return online
  }
  const context: Context = {
    io,
    client: (token) => needed().client(token),
    connection: () => needed().connection(),
    ownVersion: version,
    exit: (code) => {
      exitCode = code
    },
  }
  program.hook('preAction', async (_, command) => {
    if (!OFFLINE_VERBS.has(verbOf(command))) online = await connect(io, program.opts(), reasonGiven(command))
  })

  const isAll = typed === ALL
  const groups = VERB_GROUPS.filter(({ ofServer }) => ofServer !== true || !('client' in deps))
  const isUnknown = !isAll && typed !== null && !groups.some(({ verbs }) => Object.hasOwn(verbs, typed))
  for (const { topic, verbs, load } of groups) {
    program.commandsGroup(`${topic}:`)
    if (isAll || (typed !== null && Object.hasOwn(verbs, typed))) (await load(partsOf(deps)))(program, context)
    else if (typed === null || isUnknown) for (const name of Object.keys(verbs)) program.command(name)
    for (const command of program.commands) {
      const description = verbs[command.name()]
      if (description !== undefined) command.description(description)
    }
  }
  addReasons(program)
  return { program, exitCode: () => exitCode }
}

function partsOf(deps: CliDeps): CommandParts {
  if (!('client' in deps)) return { preview: deps.local, local: deps.local }
  const { client } = deps
  return { preview: async () => client, local: () => Promise.reject(new Error('the client has no verbs of the server')) }
}

/** Loaded for verbs that ask a server only. */
async function connect(
  io: CliIo,
  flags: Record<string, string | undefined>,
  reason: string | undefined,
): Promise<Pick<Context, 'client' | 'connection'>> {
  const [{ createClient }, { resolveConnection }, { createRenewal }] = await Promise.all([
    import('./client.ts'),
    import('./contexts/connection.ts'),
    import('./sign-in/saved-login.ts'),
  ])
  let connection: Connection | null = null
  const resolved = () => {
    connection ??= resolveConnection(flags, io.env)
    return connection
  }
  return {
    connection: resolved,
    client: (ownToken) => {
      const { server, token, ca, context, isLogin } = resolved()
      const isRenewed = ownToken === undefined && isLogin === true && context !== null
      const renewed = isRenewed ? createRenewal({ io, context, client: createClient(io, { server, token: undefined, ca }) }) : undefined
      return createClient(io, { server, token: ownToken ?? token, renewed, ca, reason })
    },
  }
}

function verbOf(command: CommandUnknownOpts): string {
  let verb = command
  while (verb.parent?.parent) verb = verb.parent
  return verb.name()
}

const GLOBAL_VALUES: readonly string[] = ['--server', '--server-ca', '--token', '--context']

/** The first word that is neither an option nor the value of one; `help get` is about `get`. Null: the program itself
 *  was asked. */
export function typedVerb(argv: readonly string[]): string | null {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? ''
    if (GLOBAL_VALUES.includes(word)) i++
    else if (!word.startsWith('-') && word !== 'help') return word
  }
  return null
}

/** Parses and runs `io.argv`. Never throws and never ends the process. */
export async function runCli(deps: CliDeps): Promise<number> {
  const { io } = deps
  const argv = normalise(io.argv)
  if (argv[0] === COMPLETE_VERB) return runCompletion(deps, argv[1] ?? '', argv.slice(3))
  const typed = typedVerb(argv)
  if ('client' in deps && VERB_GROUPS.some(({ ofServer, verbs }) => ofServer === true && Object.hasOwn(verbs, typed ?? ''))) {
    io.stderr.write(`error: this build of skerry has no server: run \`skerry ${typed}\` with the build for Linux servers\n`)
    return EXIT_USAGE
  }
  try {
    const { program, exitCode } = await createCommandLine(deps, typed)
    await program.parseAsync(argv, { from: 'user' })
    return exitCode()
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.code === 'commander.helpDisplayed' ? 0 : EXIT_USAGE
    }
    if (error instanceof UsageError) {
      io.stderr.write(`error: ${error.message}\n`)
      return EXIT_USAGE
    }
    const { errorText } = await import('./context.ts')
    io.stderr.write(errorText(error))
    return EXIT_FAILURE
  }
}

/** Typed by the scripts of `skerry completion`, never by people. */
const COMPLETE_VERB = '__complete'

async function runCompletion(deps: CliDeps, shell: string, words: readonly string[]): Promise<number> {
  try {
    const [{ complete }, { createNames }, { resolveConnection }] = await Promise.all([
      import('./completion/complete.ts'),
      import('./completion/names.ts'),
      import('./contexts/connection.ts'),
    ])
    const { program } = await createCommandLine(deps, typedVerb(words.slice(0, -1)))
    await complete(
      deps.io,
      program,
      shell,
      words,
      createNames(deps.io, () => resolveConnection(flagsOf(words), deps.io.env)),
    )
  } catch {
    // A person is typing: an error would be written into their line.
  }
  return 0
}

/** The global options among the words of an unfinished line. */
function flagsOf(words: readonly string[]): Record<string, string> {
  const value = (flag: string): [string, string][] => {
    const at = words.indexOf(flag)
    const given = at < 0 ? words.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1) : words[at + 1]
    return given === undefined || given === '' ? [] : [[flag.slice(2).replace('-ca', 'Ca'), given]]
  }
  return Object.fromEntries(GLOBAL_VALUES.flatMap(value))
}

/** `skerry --version -o json` is `skerry version --client -o json`. */
function normalise(argv: readonly string[]): string[] {
  const [first, ...rest] = argv
  return first === '--version' || first === '-V' ? ['version', '--client', ...rest] : [...argv]
}
