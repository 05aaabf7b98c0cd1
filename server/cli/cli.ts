// The program `skerry`: commands, options, help, exit codes. Exit codes: 0 success, 1 failure, 2 invalid arguments.
import { Argument, Command, CommanderError, type CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { addOptions } from '../../shared/adapters/option-flags.ts'
import { RENDER_OUTPUTS } from '../../shared/adapters/render-text.ts'
import { COUNT_BY, COUNT_OF } from '../../shared/model/counts.ts'
import { LIST_LIMIT_MAX } from '../../shared/model/views.ts'
import { apply } from './apply.ts'
import { createClient } from './client.ts'
import { collect, examples, isGiven, output, projectOf, projectOption, wholeNumber } from './command-options.ts'
import { confirm } from './confirm.ts'
import { type Context, errorText } from './context.ts'
import { addConfigCommands } from './contexts/commands.ts'
import { type Connection, resolveConnection, SERVER_DEFAULT } from './contexts/connection.ts'
import { count } from './count.ts'
import { remove } from './delete.ts'
import { describe } from './describe.ts'
import { events } from './events.ts'
import { explainField } from './field-reference.ts'
import { get } from './get.ts'
import { healthCheck } from './health-check.ts'
import { history } from './history.ts'
import { type CliIo, UsageError } from './io.ts'
import { KINDS, kindHelp } from './kinds.ts'
import { addLocalCommands, type LocalCommands } from './local-commands.ts'
import { render } from './render.ts'
import { confirmRestore, showRestore } from './restore.ts'
import { listServerKeys, ROTATED_KEYS, revokeServerKeys, rotateServerKey } from './server-key.ts'
import { addSuspendCommands } from './suspend-commands.ts'
import { sync } from './sync.ts'
import { addTokenCommands } from './token-commands.ts'
import { type OwnVersion, version } from './version.ts'

export interface CliDeps {
  local: LocalCommands
  /** Called only when asked: it may be slow. */
  version(): OwnVersion
  io: CliIo
}

const EXIT_FAILURE = 1
const EXIT_USAGE = 2

const HEALTH_CHECK_HELP = `
RULE names what decided. The rules, in the order in which they are asked:
  deletion               the object is being deleted
  observedGeneration     its controller has not seen its newest spec
  service                spec.health of the service
  healthrule:NAME        a HealthRule of the project (PROJECT/NAME), then of the fleet
  stop                   paused or suspended
  condition:TYPE         Stalled or Reconciling is True
  kind:GROUP/KIND        a built-in rule for this kind
  general                conditions, phases and counters of any other custom kind
  existence              any other built-in kind

The health deadline and the Pods of a workload are not evaluated. An object without a status is Progressing.
Exit codes: 0 Healthy or Suspended, 1 any other health, 2 invalid arguments, or an object or a rule that cannot be read.`

const CONFIRM_DATA = 'exact name of an object that holds data and may be deleted where a service is removed; may be repeated'
const RENDER_HELP = `
Data of Secrets and what came of a Config's secrets is shown as marks. Options from --dir on are for rendering on this machine (-f).
Exit codes: 0 it renders, 1 it does not (problems are printed as file:line:column), 2 invalid arguments.`

/** The table of commands and flags. `exitCode` is that of the command that ran last. */
export function createCommandLine({ local, version: ownVersion, io }: CliDeps): { program: CommandUnknownOpts; exitCode(): number } {
  let exitCode = 0
  const program = new Command('skerry')
    .description('GitOps for fleets of Kubernetes clusters that are often offline.')
    .option(
      '--server <url>',
      `address of the server, or unix:PATH (env: SKERRY_SERVER, default: that of the context, else ${SERVER_DEFAULT})`,
    )
    .option('--server-ca <file>', 'PEM file of the authority of the server, in place of those of the system (env: SKERRY_SERVER_CA)')
    .option('--token <token>', 'API token (env: SKERRY_TOKEN; an environment variable does not show in `ps`)')
    .option('--context <name>', 'context of the contexts file to use (env: SKERRY_CONTEXT)')
    .addHelpText('before', examples('skerry get clusters', 'skerry apply -f fleet/', 'skerry describe service web', 'skerry confirm'))
    .addHelpText('after', '\nExit codes: 0 success, 1 failure, 2 invalid arguments.')
    .configureOutput({ writeOut: (text) => void io.stdout.write(text), writeErr: (text) => void io.stderr.write(text) })
    .showHelpAfterError('(see --help)')
    .exitOverride()
  let connection: Connection | null = null
  const context: Context = {
    io,
    connection: () => {
      connection ??= resolveConnection(program.opts(), io.env)
      return connection
    },
    client: (ownToken) => {
      const { server, token, ca } = context.connection()
      return createClient(io, { server, token: ownToken ?? token, ca })
    },
  }
  // commander would read the real environment.
  const inProject = <T extends { project: string }>(options: T, given: boolean): T => projectOf(context, options, given)
  /** Health rules without a project are of the whole fleet: for them only a project that is named counts. */
  const scoped = <T extends { project: string }>(options: T, given: boolean) => ({
    ...inProject(options, given),
    givenProject: given ? options.project : undefined,
  })

  addLocalCommands(program, local, (code) => {
    exitCode = code
  })

  program
    .command('get')
    .description(`list resources, or show one: ${kindHelp(KINDS)}`)
    .argument('<kind>', 'kind, or kind/name')
    .argument('[name]')
    .addOption(projectOption())
    .option('-A, --all-projects', 'all projects')
    .option('-l, --selector <labels>', 'only what has (or is in clusters that have) these labels: env=prod,tier!=x,region in (eu,us)')
    .option('--cluster <name>', 'only of this cluster')
    .option('--service <name>', 'only of this service')
    .option('--status-selector <words>', 'objects, placements: health=Degraded,sync!=Synced; clusters: liveness=Offline')
    .option('--search <words>', 'only where each word occurs in a name, kind, cluster, reason or message')
    .option('--kind <kind>', 'of objects: only of this kind')
    .option('-n, --namespace <name>', 'of objects: only in this namespace')
    .option('--image <text>', 'of objects: only what runs an image with this text in its name')
    .option('--sort-by <order>', 'objects: cluster, name, newest, oldest, health; placements: cluster, name, health; clusters: name, seen')
    .option('--limit <count>', 'maximum number of items', wholeNumber(1_000_000 - 1))
    .option('--chunk-size <count>', 'number of items for each request', wholeNumber(LIST_LIMIT_MAX))
    .option('-w, --watch', 'keep printing changes')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry get services -w',
        'skerry get clusters -l env=prod',
        'skerry get svc/web -o yaml',
        'skerry get objects --service web --cluster ship-7',
        "skerry get objects -A -l env=prod --status-selector 'health in (Degraded,Missing)' --sort-by newest --limit 20",
        'skerry get services -A -o wide',
      ),
    )
    .action((kind, name, options, command) => get(context, kind, name, scoped(options, isGiven(command))))

  program
    .command('describe')
    .description('show details of a cluster, service, repository, config, health rule or confirmation')
    .argument('<kind>', 'kind, or kind/name')
    .argument('[name]')
    .addOption(projectOption())
    .option('--show-secret', 'of a repository: the secret of its webhook')
    .addHelpText(
      'before',
      examples('skerry describe service web', 'skerry describe cluster/ship-7', 'skerry describe repository apps --show-secret'),
    )
    .action((kind, name, options, command) => describe(context, kind, name, scoped(options, isGiven(command))))

  program
    .command('explain')
    .description('describe the fields of a kind or of a field: type, default, meaning; needs no server')
    .argument('[field]', 'service, service.spec.render.helm; without it: the kinds that there are')
    .option('-R, --recursive', 'the tree of all fields below')
    .addHelpText(
      'before',
      examples('skerry explain', 'skerry explain service.spec', 'skerry explain service.spec.render.helm', 'skerry explain config -R'),
    )
    .action((field, options) => explainField(io, field, options))

  program
    .command('apply')
    .description('create or update repositories, configs, health rules, services and clusters; all or nothing')
    .option('-f, --filename <path>', 'file, folder or - for stdin; may be repeated', collect)
    .option('-R, --recursive', 'include subfolders')
    .option(
      '--dry-run',
      'check on the server and say what would change, which services would leave which clusters, and what would be deleted there',
    )
    .option('--confirm-data <name>', CONFIRM_DATA, collect)
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry apply -f fleet.yaml',
        'skerry apply -f fleet/ -R --dry-run',
        'skerry get svc/web -o yaml | sed s/dev/prod/ | skerry apply -f -',
      ),
    )
    .action(({ filename = [], ...options }) => apply(context, { filename, ...options }))

  program
    .command('delete')
    .description('delete a repository, config, health rule, service, cluster or join token, after confirmation')
    .argument('<kind>', 'kind, or kind/name')
    .argument('[names...]', 'one; of services also several')
    .addOption(projectOption())
    .option('-y, --yes', 'do not ask for confirmation; objects that hold data are deleted only if --confirm-data names them')
    .option('--confirm-data <name>', CONFIRM_DATA, collect)
    .addHelpText(
      'before',
      examples(
        'skerry delete service web',
        'skerry delete services web shop till',
        "skerry delete service shop --yes --confirm-data 'PersistentVolumeClaim shop/data'",
        'skerry delete cluster/ship-7 --yes',
      ),
    )
    .action((kind, names, options, command) => remove(context, kind, names, scoped(options, isGiven(command))))

  program
    .command('confirm')
    .description('list pending confirmations with the exact names, or confirm one by its id')
    .argument('[id]')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--confirm-data <name>', CONFIRM_DATA, collect)
    .addOption(output())
    .addHelpText(
      'before',
      examples('skerry confirm', 'skerry confirm k7f2qx', "skerry confirm k7f2qx --yes --confirm-data 'PersistentVolumeClaim shop/data'"),
    )
    .action((id, options) => confirm(context, id, options))

  program
    .command('sync')
    .description('show what a revision of a service with sync.mode manual would change, object by object, and approve it')
    .argument('<service>', 'name, or service/name')
    .addOption(projectOption())
    .option('--cluster <name>', 'only in this cluster; may be repeated', collect)
    .option('-l, --selector <labels>', 'only in clusters that have these labels: ring=canary')
    .option('--dry-run', 'show the plan only')
    .option('-y, --yes', 'do not ask for confirmation')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry sync web --dry-run',
        'skerry sync web',
        'skerry sync web --cluster ship-7 --cluster ship-8',
        'skerry sync web -l ring=canary --yes',
      ),
    )
    .addHelpText(
      'after',
      `
The plan compares the last synced revision of each cluster with the new one: names and numbers, no values.
The approval is for exactly the revision shown: if a newer one arrives meanwhile, nothing is done and the exit code is 1.
While a revision waits, drift is corrected to what is applied, and nothing is pruned.
Exit codes: 0 success or nothing waits, 1 failure or refused, 2 invalid arguments.`,
    )
    .action((service, { cluster = [], ...options }, command) =>
      sync(context, service, inProject({ cluster, ...options }, isGiven(command))),
    )

  addSuspendCommands(program, context)

  const renderCommand = program
    .command('render')
    .description('render a service on the server, or with -f on this machine; changes nothing')
    .argument('[service]', 'name, or service/name')
    .addOption(projectOption())
    .option('--cluster <name>', 'as this cluster gets it')
    .option('--all-clusters', 'in how many ways its clusters get it, and which of them share one')
    .option('-f, --filename <file>', 'on this machine: the Service, and Configs and a Cluster beside it')
    .addOption(new Option('-o, --output <form>', 'form of the objects').choices(RENDER_OUTPUTS))
    .addHelpText(
      'before',
      examples(
        'skerry render web',
        'skerry render web --cluster ship-7 -o name',
        'skerry render web --all-clusters',
        'skerry render -f service.yaml --dir .',
        'skerry render web -f fleet.yaml --dir apps=.,charts=../charts --cluster-name ship-7 --cluster-labels region=eu --kube-version v1.36.3',
      ),
    )
    .addHelpText('after', RENDER_HELP)
    .action(async (service, options, command) => {
      if (options.filename === undefined) exitCode = await render(context, service, inProject(options, isGiven(command)))
      else exitCode = await local.render.run(options, service ?? '')
    })
  addOptions(renderCommand, local.render.table)

  program
    .command('health-check')
    .description('evaluate the health of Kubernetes objects in files, as an agent does, and name the rule that decided')
    .option('-f, --filename <path>', 'objects: file, folder or - for stdin; may be repeated', collect)
    .option('--rule <path>', 'HealthRules to judge with: file, folder or -; may be repeated', collect)
    .option('--service <file>', 'Service whose own rules and options count, with the rules of its project')
    .option('--from-server', 'also the HealthRules of the server')
    .option('-R, --recursive', 'include subfolders')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry health-check -f thing.yaml',
        'kubectl get thing x -o yaml | skerry health-check -f - --rule rules/',
        'skerry health-check -f thing.yaml --service service.yaml --from-server -o json',
      ),
    )
    .addHelpText('after', HEALTH_CHECK_HELP)
    .action(async (options) => {
      exitCode = await healthCheck(context, options)
    })

  program
    .command('history')
    .description('list revisions of a service, or with --cluster its status changes there; newest first')
    .argument('<kind>', 'service, or service/name')
    .argument('[name]')
    .addOption(projectOption())
    .option('--cluster <name>', 'how its sync and health changed in this cluster')
    .option('--limit <count>', 'number of the newest entries', wholeNumber(LIST_LIMIT_MAX), 20)
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples('skerry history service web', 'skerry history svc/web --cluster ship-7', 'skerry history service web --limit 5 -o json'),
    )
    .action((kind, name, options, command) => history(context, kind, name, inProject(options, isGiven(command))))

  program
    .command('events')
    .description('list events, newest last')
    .option('-p, --project <name>', 'only of this project')
    .option('--cluster <name>', 'only of this cluster')
    .option('--service <name>', 'only of services of this name')
    .option('-f, --follow', 'keep printing new events')
    .option('--limit <count>', 'number of past events', wholeNumber(LIST_LIMIT_MAX), 50)
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText('before', examples('skerry events --cluster ship-7', 'skerry events -f', 'skerry events --service web -o json'))
    .action((options) => events(context, options))

  program
    .command('count')
    .description('count placements, objects or clusters')
    .option('--by <what>', `${COUNT_BY.join(', ')}; label=KEY, service=PROJECT, version=agent and image=PREFIX are a part`)
    .addOption(new Option('--of <what>', 'placements (services in clusters), objects or clusters').choices(COUNT_OF))
    .option('--top <count>', 'only the keys with the largest counts', wholeNumber(LIST_LIMIT_MAX))
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry count --by health',
        'skerry count --by label=env',
        'skerry count --by image --top 20',
        'skerry count --by drift-age',
        "skerry count --by service --no-headers | awk '$2 != $4 { print $1 }'",
      ),
    )
    .action((options) => count(context, options))

  addTokenCommands(program, context)
  addConfigCommands(program, context)

  const restore = program
    .command('restore')
    .description('show what a server that was restored from a backup would change in its clusters')
    .addOption(output())
    .addHelpText('before', examples('skerry restore', 'skerry restore -o json', 'skerry restore confirm'))
    .action((options) => showRestore(context, options))
  restore
    .command('confirm')
    .description('show the plan of the restore and confirm exactly it; agents are served again, nothing is deleted')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry restore confirm'))
    .action((options) => confirmRestore(context, options))

  const serverKey = program
    .command('server-key')
    .description('manage the keys of the server: for signing, for sessions and webhooks, and for secrets')
    .addHelpText('before', examples('skerry server-key list', 'skerry server-key rotate', 'skerry server-key revoke'))
  serverKey
    .command('rotate')
    .description('replace a key with a new one; agents follow by themselves, the old private key is destroyed')
    .addArgument(
      new Argument('[key]', 'signing, mac (sessions and webhooks) or secrets (of Configs)')
        .choices(ROTATED_KEYS)
        .default('signing' as const),
    )
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry server-key rotate', 'skerry server-key rotate mac', 'skerry server-key rotate secrets --yes'))
    .action((key, options) => rotateServerKey(context, key, options))
  serverKey
    .command('revoke')
    .description('make agents refuse earlier signing keys, for when one of them, or a backup with it, was stolen')
    .option('--before <fingerprint>', 'the oldest key that stays; default: the one that signs')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry server-key revoke', 'skerry server-key revoke --before 0123456789abcdef0123456789abcdef'))
    .action((options) => revokeServerKeys(context, options))
  serverKey
    .command('list')
    .description('list the signing key and earlier ones')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText('before', examples('skerry server-key list', 'skerry server-key list -o json'))
    .action((options) => listServerKeys(context, options))

  program
    .command('version')
    .description('show the version of this program, and of the server if a token is given')
    .option('--client', 'only the version of this program')
    .addOption(output())
    .addHelpText('before', examples('skerry version', 'skerry version --client -o json'))
    .action((options) => {
      const known = options.client !== true && (context.connection().token ?? '') !== ''
      return version(context, ownVersion(), { ...options, known })
    })
  return { program, exitCode: () => exitCode }
}

/** Parses and runs `io.argv`. Never throws and never ends the process. */
export async function runCli(deps: CliDeps): Promise<number> {
  const { io } = deps
  const { program, exitCode } = createCommandLine(deps)
  try {
    await program.parseAsync(normalise(io.argv), { from: 'user' })
    return exitCode()
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.code === 'commander.helpDisplayed' ? 0 : EXIT_USAGE
    }
    if (error instanceof UsageError) {
      io.stderr.write(`error: ${error.message}\n`)
      return EXIT_USAGE
    }
    io.stderr.write(errorText(error))
    return EXIT_FAILURE
  }
}

/** `skerry --version -o json` is `skerry version --client -o json`. */
function normalise(argv: readonly string[]): string[] {
  const [first, ...rest] = argv
  return first === '--version' || first === '-V' ? ['version', '--client', ...rest] : [...argv]
}
