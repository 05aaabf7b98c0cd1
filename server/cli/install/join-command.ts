// `skerry cluster join-command`: one command that installs the agent of a cluster, with a join token that expires.
import { type Command, Option } from '@commander-js/extra-typings'
import { toYaml } from '../../../shared/adapters/yaml.ts'
import { createdJoinTokenSchema } from '../../../shared/model/views.ts'
import { VERSION } from '../../../shared/runtime/build-info.ts'
import { collect, examples, output } from '../command-options.ts'
import type { Context, Output } from '../context.ts'
import { UsageError } from '../io.ts'
import { parseLabel } from '../join-token.ts'
import { documentText } from '../printing/documents.ts'
import { type AgentSite, agentManifests } from './agent-manifest.ts'

const FORMS = ['helm', 'manifest', 'node'] as const
type Form = (typeof FORMS)[number]
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

export function addClusterCommands(program: Command, context: Context): void {
  const cluster = program.command('cluster').addHelpText('before', examples('skerry cluster join-command oslo --label env=prod'))
  cluster
    .command('join-command')
    .description('print one command that installs the agent of a new cluster; it has a join token, which is valid once')
    .argument('<name>', 'name of the cluster in the fleet')
    .addOption(new Option('--form <form>', 'how the agent is installed').choices(FORMS).default('helm' as const))
    .option('--label <key=value>', 'label for the cluster; may be repeated', collect)
    .option('--expires <duration>', 'lifetime of the join token: 30m, 12h, 7d', '1h')
    .option('--url <url>', 'URL of the server for the agent; default: the URL that this command uses')
    .option('--image <image>', 'image of the agent', 'skerry-agent')
    .option('--chart <chart>', 'chart of the agent: folder, archive or oci:// reference', 'charts/skerry-agent')
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
}

interface JoinCommandOptions {
  form: Form
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
  if (!NAME.test(name)) throw new UsageError(`"${name}" is not a cluster name: expected lower-case letters, digits and dashes, at most 63`)
  const labels = Object.fromEntries(label.map(parseLabel))
  const connection = context.connection()
  const server = checkedUrl(options.url ?? connection.server, options.insecureHttp === true)
  const { id, token, expiresMs } = await context.client().send('POST', '/join-tokens', createdJoinTokenSchema, { expires, uses: 1, labels })
  const site: AgentSite = {
    ...{ server, cluster: name, token, namespace: 'skerry-system', ca: connection.ca },
    image: withTag(options.image),
    insecureHttp: options.insecureHttp === true,
  }
  const command = COMMANDS[form](site, options.chart)
  const document = documentText({ command, joinToken: id, expiresMs }, output)
  if (document !== null) {
    io.stdout.write(document)
    return
  }
  io.stdout.write(`${command}\n`)
  io.stderr.write(`\nRun this command where ${PLACES[form]}. Its join token ${id} is valid for one cluster within ${expires}.\n`)
  io.stderr.write(`Then watch the cluster join: skerry get clusters --watch\n`)
}

const PLACES: Record<Form, string> = {
  helm: 'helm can reach the cluster',
  manifest: 'kubectl can reach the cluster',
  node: 'the node runs, as root, after the package skerry-agent was installed',
}

const COMMANDS: Record<Form, (site: AgentSite, chart: string) => string> = {
  helm: ({ server, cluster, token, image, namespace, insecureHttp, ca }, chart) => {
    const [, repository = image, tag = ''] = /^(.*?)(?::([^/:]+))?$/.exec(image) ?? []
    const values = {
      ...{ server, cluster, 'joinToken.value': token, 'image.repository': repository, 'image.tag': tag },
      ...(insecureHttp ? { insecureHttp: 'true' } : {}),
      ...(ca === undefined ? {} : { 'serverCa.pem': ca }),
    }
    const sets = Object.entries(values).map(
      ([key, value]) => `--set${key === 'insecureHttp' ? '' : '-string'} ${quoted(`${key}=${forHelm(value)}`)}`,
    )
    return [`helm upgrade --install skerry-agent ${quoted(chart)} -n ${namespace} --create-namespace`, ...sets].join(' \\\n  ')
  },
  manifest: (site) => `kubectl apply --server-side -f - <<'SKERRY'\n${agentManifests(site).map(toYaml).join('---\n')}SKERRY`,
  node: ({ server, cluster, token, insecureHttp, ca }) =>
    [
      `skerry-agent install --server ${quoted(server)} --cluster ${quoted(cluster)} --join-token ${quoted(token)}`,
      ...(insecureHttp ? ['--insecure-http'] : []),
      ...(ca === undefined ? [] : [`--server-ca-pem ${quoted(ca)}`]),
    ].join(' '),
}

const withTag = (image: string): string => (/[:@][^/]*$/.test(image) ? image : `${image}:${VERSION}`)

/** Commas and backslashes divide values in --set. */
const forHelm = (value: string): string => value.replace(/[\\,]/g, '\\$&')

/** For a POSIX shell. */
const quoted = (text: string): string => (/^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

function checkedUrl(text: string, insecureHttp: boolean): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`an agent cannot use the server URL ${text}: set --url https://HOST`)
  const isLoopback = /^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname)
  if (url.protocol === 'http:' && !isLoopback && !insecureHttp)
    throw new UsageError(`agents refuse ${text}: set --url https://HOST, or --insecure-http if the network protects the link`)
  return text.replace(/\/$/, '')
}
