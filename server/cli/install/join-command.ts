// `skerry cluster`: join-command prints one command that installs the agent of a cluster, with a join token that
// expires; rotate-recipient is in `../secrets.ts`.
import { Argument, type Command, Option } from '@commander-js/extra-typings'
import { toYaml } from '../../../shared/adapters/yaml.ts'
import type { AgentSite } from '../../../shared/install/agent-manifest.ts'
import {
  agentUrlProblem,
  isClusterName,
  isLoopbackServer,
  JOIN_CHART,
  JOIN_FORMS,
  JOIN_IMAGE,
  JOIN_NAMESPACE,
  JOIN_PLACES,
  type JoinForm,
  joinCommand,
  withTag,
} from '../../../shared/install/join-command.ts'
import { createdJoinTokenSchema } from '../../../shared/model/views.ts'
import { VERSION } from '../../../shared/runtime/build-info.ts'
import { collect, examples, output } from '../command-options.ts'
import type { Context, Output } from '../context.ts'
import { UsageError } from '../io.ts'
import { parseLabel } from '../join-token.ts'
import { documentText } from '../printing/documents.ts'

export function addClusterCommands(program: Command, context: Context): void {
  const cluster = program
    .command('cluster')
    .addHelpText('before', examples('skerry cluster join-command oslo --label env=prod', 'skerry cluster rotate-recipient oslo'))
  cluster
    .command('join-command')
    .description('print one command that installs the agent of a new cluster; it has a join token, which is valid once')
    .argument('<name>', 'name of the cluster in the fleet')
    .addOption(new Option('--form <form>', 'how the agent is installed').choices(JOIN_FORMS).default('helm' as const))
    .option('--label <key=value>', 'label for the cluster; may be repeated', collect)
    .option('--expires <duration>', 'lifetime of the join token: 30m, 12h, 7d', '1h')
    .option('--url <url>', 'URL of the server for the agent; default: the URL that this command uses')
    .option('--image <image>', 'image of the agent', JOIN_IMAGE)
    .option('--chart <chart>', 'chart of the agent: folder, archive or oci:// reference', JOIN_CHART)
    .option('--insecure-http', 'allow an http:// URL of another host, if the network protects the link by other means')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry cluster join-command oslo --label env=prod',
        'skerry cluster join-command oslo --form manifest --image registry.example.com/skerry-agent:0.1.0 | sh',
        'skerry cluster join-command oslo --form node --expires 12h',
      ),
    )
    .action((name, options) => printJoinCommand(context, name, options))
  cluster
    .command('rotate-recipient')
    .description('ask agents for another key, to which their rows are sealed from then on')
    .addArgument(new Argument('[clusters...]', 'names of clusters'))
    .option('-l, --selector <selector>', 'clusters with these labels')
    .option('--all', 'all clusters')
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('before', examples('skerry cluster rotate-recipient ship-7', 'skerry cluster rotate-recipient -l region=north --yes'))
    .action(async (clusters, options) => (await import('../secrets.ts')).rotateRecipient(context, clusters, options))
}

interface JoinCommandOptions {
  form: JoinForm
  label?: string[]
  expires: string
  url?: string
  image: string
  chart: string
  insecureHttp?: true
  output?: Output
}

async function printJoinCommand(context: Context, name: string, options: JoinCommandOptions): Promise<void> {
  const { io } = context
  const { form, label = [], expires, output } = options
  if (!isClusterName(name))
    throw new UsageError(`"${name}" is not a cluster name: expected lower-case letters, digits and dashes, at most 63`)
  const labels = Object.fromEntries(label.map(parseLabel))
  const connection = context.connection()
  const server = options.url ?? connection.server
  const problem = agentUrlProblem(server, options.insecureHttp === true)
  if (problem !== null) throw new UsageError(problem)
  const { id, token, expiresMs } = await context.client().send('POST', '/join-tokens', createdJoinTokenSchema, { expires, uses: 1, labels })
  const site: AgentSite = {
    ...{ server: server.replace(/\/$/, ''), cluster: name, token, namespace: JOIN_NAMESPACE, ca: connection.ca },
    image: withTag(options.image, VERSION),
    insecureHttp: options.insecureHttp === true,
  }
  const command = joinCommand(form, site, { chart: options.chart, document: toYaml })
  const document = documentText({ command, joinToken: id, expiresMs }, output)
  if (document !== null) {
    io.stdout.write(document)
    return
  }
  io.stdout.write(`${command}\n`)
  io.stderr.write(`\nRun this command where ${JOIN_PLACES[form]}. Its join token ${id} is valid for one cluster within ${expires}.\n`)
  if (form !== 'node' && isLoopbackServer(server))
    io.stderr.write(`A Pod cannot reach ${server}: set --url to an address of the server that the cluster reaches.\n`)
  io.stderr.write(`Then watch the cluster join: skerry get clusters --watch\n`)
}
