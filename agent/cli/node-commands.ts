// `skerry-agent install | upgrade | uninstall`: the agent as a service of a node without Helm.
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { installNode, type NodeMachine, uninstallNode, upgradeNode } from '../node/node-install.ts'
import { examples } from './edge-commands.ts'

interface InstallFlags {
  server: string
  cluster: string
  joinToken?: string
  joinTokenFile?: string
  kubeconfig?: string
  serverCa?: string
  serverCaPem?: string
  insecureHttp?: true
  metered?: true
  start: boolean
}

const INSTALL_EXAMPLE = 'install --server https://skerry.example.com --cluster oslo --join-token skj.…'

export function addNodeCommands(program: Command, { out }: { out(text: string): void }): void {
  const say = (lines: readonly string[]) => out(`${lines.join('\n')}\n`)
  program
    .command('install')
    .description('Install the agent as a systemd service of this node, with the credentials of its Kubernetes')
    .addHelpText(
      'before',
      examples(INSTALL_EXAMPLE, 'install --server https://skerry.example.com --cluster oslo --kubeconfig /etc/kubernetes/admin.conf'),
    )
    .requiredOption('--server <URL>', 'URL of the Skerry server')
    .requiredOption('--cluster <NAME>', 'name of this cluster in the fleet')
    .option('--join-token <TOKEN>', 'join token; without one the identity in /var/lib/skerry-agent is used')
    .option('--join-token-file <FILE>', 'file with the join token')
    .option('--kubeconfig <FILE>', 'Kubernetes credentials; default: those of k3s, RKE2, k0s, MicroK8s or kubeadm on this node')
    .option('--server-ca <FILE>', 'PEM file of the certificate authority of the server')
    .option('--server-ca-pem <PEM>', 'the same as text')
    .option('--insecure-http', 'allow an http:// server on another host, if the network protects the link by other means')
    .option('--metered', 'save bytes on a metered link')
    .option('--no-start', 'write the files, and start nothing')
    .action((flags: InstallFlags) => {
      const { server, cluster, joinToken, joinTokenFile, kubeconfig, serverCa, serverCaPem, start } = flags
      say(
        installNode(thisMachine(), {
          ...{ server, cluster, kubeconfig, start, insecureHttp: flags.insecureHttp === true, metered: flags.metered === true },
          joinToken: joinToken ?? textOf('--join-token-file', joinTokenFile)?.trim(),
          caPem: serverCaPem ?? textOf('--server-ca', serverCa),
        }),
      )
    })
  program
    .command('upgrade')
    .description('Replace the installed agent of this node with this program; a version that does not stay up is taken back')
    .addHelpText('before', examples('upgrade'))
    .action(async () => say(await upgradeNode(thisMachine())))
  program
    .command('uninstall')
    .description('Remove the service of this node; objects in the cluster stay')
    .addHelpText('before', examples('uninstall', 'uninstall --purge'))
    .option('--purge', 'also delete /var/lib/skerry-agent, with the identity of the agent')
    .action(({ purge }: { purge?: true }) => say(uninstallNode(thisMachine(), { purge: purge === true })))
}

function textOf(option: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new AppError('bad_options', { doing: `read ${option} ${file}` }, { cause: error })
  }
}

function thisMachine(): NodeMachine {
  return {
    root: '/',
    executable: process.execPath,
    isRoot: process.getuid?.() === 0,
    run: (command) => {
      const { success, stdout, stderr } = Bun.spawnSync([...command])
      if (!success) throw new AppError('bad_options', { doing: `run ${command.join(' ')}`, detail: stderr.toString().trim() })
      return stdout.toString()
    },
    sleep: (ms) => systemClock.sleep(ms),
  }
}
