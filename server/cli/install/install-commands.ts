// The commands `install` and `uninstall`. Their --context is one of the kubeconfig, because no server exists yet.
import { type Command, Option } from '@commander-js/extra-typings'
import { withTag } from '../../../shared/install/join-command.ts'
import { VERSION } from '../../../shared/runtime/build-info.ts'
import { examples, output, wholeNumber } from '../command-options.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../io.ts'
import type { KubectlPlace } from './kubectl.ts'

const NAMESPACE = 'skerry-system'
const namespaceOption = () => new Option('-n, --namespace <name>', 'namespace of the server').default(NAMESPACE)
const kubectlOption = () => new Option('--kubectl <file>', 'kubectl to use').default('kubectl')
const kubeconfigOption = () => new Option('--kubeconfig <file>', 'kubeconfig of the cluster; default: that of kubectl')
const contextOption = () => new Option('--context <name>', 'context of the kubeconfig; default: the current one')

interface PlaceOptions {
  kubectl: string
  kubeconfig?: string | undefined
}

/** The program has an option of the same name, which takes the value wherever it is typed. */
function placeOf({ kubectl, kubeconfig }: PlaceOptions, command: { optsWithGlobals(): object }): KubectlPlace {
  const { context } = command.optsWithGlobals() as { context?: string }
  return { kubectl, kubeconfig, context }
}

export function addInstallCommands(program: Command, context: Context): void {
  const actions = () => import('./server-install.ts')
  program
    .command('install')
    .description('install a server in a Kubernetes cluster with kubectl, and print its URL and a link that signs in once')
    .addOption(contextOption())
    .addOption(kubeconfigOption())
    .addOption(kubectlOption())
    .addOption(namespaceOption())
    .option('--url <url>', 'URL of the server for agents and people; default: that of the Service in the cluster')
    .option('--image <image>', 'image of the server', 'skerry-server')
    .option('--storage <size>', 'size of the volume', '10Gi')
    .option('--storage-class <name>', 'storage class of the volume; default: that of the cluster')
    .option('--tls-secret <name>', 'Secret with a certificate, for HTTPS by the server itself')
    .option('--ingress-class <name>', 'make an Ingress of this class for the host of --url')
    .addOption(
      new Option('--service-type <type>', 'type of the Service')
        .choices(['ClusterIP', 'NodePort', 'LoadBalancer'] as const)
        .default('ClusterIP' as const),
    )
    .option('--timeout <seconds>', 'seconds to wait for the server', wholeNumber(3_600), 300)
    .option('--dry-run', 'print the manifests and change nothing')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry install --context prod --image registry.example.com/skerry-server:0.1.0',
        'skerry install --context prod --url https://skerry.example.com --ingress-class nginx',
        'skerry install --dry-run | less',
      ),
    )
    .addHelpText('after', '\nThe chart charts/skerry has all other settings; `helm upgrade --install skerry` takes the objects over.')
    .action(async ({ url, image, storage, storageClass, tlsSecret, ingressClass, ...options }, command) =>
      (await actions()).installServer(context, {
        place: placeOf(options, command),
        site: {
          ...{ namespace: nameOf('--namespace', options.namespace), serviceType: options.serviceType, storageSize: sizeOf(storage) },
          ...{ url: url?.replace(/\/$/, ''), storageClass: optionalName('--storage-class', storageClass) },
          ...{ tlsSecret: optionalName('--tls-secret', tlsSecret), ingressClass: optionalName('--ingress-class', ingressClass) },
          image: withTag(image, VERSION),
        },
        timeoutSeconds: options.timeout,
        dryRun: options.dryRun === true,
        output: options.output,
      }),
    )

  program
    .command('uninstall')
    .description('remove a server that `skerry install` made; asks whether its volume is kept')
    .addOption(contextOption())
    .addOption(kubeconfigOption())
    .addOption(kubectlOption())
    .addOption(namespaceOption())
    .addOption(new Option('--keep', 'do not ask; keep the volume with fleet store and keys').conflicts('prune'))
    .option('--prune', 'do not ask; delete the volume, too')
    .addHelpText('before', examples('skerry uninstall --context prod', 'skerry uninstall --context prod --keep'))
    .action(async ({ keep, prune, ...options }, command) =>
      (await actions()).uninstallServer(context, {
        place: placeOf(options, command),
        namespace: nameOf('--namespace', options.namespace),
        wish: prune === true ? 'prune' : keep === true ? 'keep' : undefined,
      }),
    )
}

const DNS_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

function nameOf(option: string, text: string): string {
  if (!DNS_NAME.test(text)) throw new UsageError(`${option} ${text}: expected lower-case letters, digits, dashes and dots`)
  return text
}

const optionalName = (option: string, text: string | undefined): string | undefined =>
  text === undefined ? undefined : nameOf(option, text)

function sizeOf(text: string): string {
  if (!/^[1-9]\d*(\.\d+)?(Mi|Gi|Ti|M|G|T)$/.test(text)) throw new UsageError(`--storage ${text}: expected a size such as 10Gi`)
  return text
}
