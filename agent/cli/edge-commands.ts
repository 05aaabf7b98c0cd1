// `skerry-agent hold | unhold | confirm | take-over`: orders of a person at the site to the running agent, without a
// network.
import { hostname, userInfo } from 'node:os'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { nameWithLoss } from '../../shared/kube/data-loss.ts'
import { DEFAULT_PROJECT, durationMs, durationSchema } from '../../shared/model/resources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { RUN_OPTIONS } from '../config.ts'
import { askRunningAgent, orderRunningAgent } from '../local-api.ts'
import type { EdgeOrder } from '../reconcile/edge-orders.ts'

export interface EdgeIo {
  out(text: string): void
  clock: Clock
}

interface Flags {
  data: string
  by: string
  all?: boolean
}

/** Before the words of a command's help. */
export const examples = (...lines: string[]): string => `Examples:\n${lines.map((line) => `  skerry-agent ${line}\n`).join('')}`

const dataOption = () => new Option('--data <DIR>', 'data folder of the agent').env('SKERRY_DATA').default(RUN_OPTIONS.data.default)
const byOption = () =>
  new Option('--by <NAME>', 'name of the caller, for the audit log').env('SKERRY_BY').default(userName(), 'the user of this shell')

function userName(): string {
  const uid = process.getuid?.() ?? null
  try {
    return userText(userInfo().username, uid, hostname())
  } catch {
    return userText('', uid, hostname())
  }
}

/**
 * A container with nothing but the program has users without names and no USER variable. The text is then the number
 * and the host.
 */
export const userText = (name: string, uid: number | null, host: string): string =>
  name !== '' && name !== 'unknown' ? name : uid === null ? `somebody@${host}` : `uid ${uid}@${host}`

export function addEdgeCommands(program: Command, io: EdgeIo): void {
  program
    .command('hold')
    .description('Stop changes and prunes of a service, or of the whole cluster; deleted objects are still restored')
    .argument('[PROJECT/SERVICE]')
    .addHelpText('before', examples('hold default/shop --reason stocktaking --for 8h', 'hold --all --reason "new switches"'))
    .option('--all', 'the whole cluster')
    .requiredOption('--reason <TEXT>', 'required: reason, shown with the service')
    .option('--for <DURATION>', 'duration of the hold, such as 8h')
    .addOption(byOption())
    .addOption(dataOption())
    .action((name: string | undefined, flags: Flags & { reason: string; for?: string }) => {
      const { by, reason: why, for: length } = flags
      const until = length === undefined ? {} : { untilMs: io.clock.nowMs() + lengthMs(length) }
      return order({ kind: 'hold', service: scopeOf(name, flags), by, why, ...until }, flags, io)
    })
  program
    .command('unhold')
    .description('End the hold of a service, or of the whole cluster')
    .argument('[PROJECT/SERVICE]')
    .addHelpText('before', examples('unhold default/shop', 'unhold --all'))
    .option('--all', 'the hold on the whole cluster')
    .addOption(byOption())
    .addOption(dataOption())
    .action((name: string | undefined, flags: Flags) => order({ kind: 'unhold', service: scopeOf(name, flags), by: flags.by }, flags, io))
  program
    .command('take-over')
    .description('Make this agent enforce the cluster instead of another active Skerry agent, which then stops')
    .addHelpText('before', examples('take-over --reason "moved to the new server"'))
    .requiredOption('--reason <TEXT>', 'required: reason for the audit log')
    .addOption(byOption())
    .addOption(dataOption())
    .action((flags: Flags & { reason: string }) => order({ kind: 'take_over', by: flags.by, why: flags.reason }, flags, io))
  program
    .command('confirm')
    .description('Show the deletions of a service that wait for confirmation; with --digest, confirm exactly those')
    .argument('<PROJECT/SERVICE>')
    .addHelpText('before', examples('confirm default/shop', 'confirm default/shop --digest 3f2c…'))
    .option('--digest <DIGEST>', 'digest of the list that was shown')
    .addOption(byOption())
    .addOption(dataOption())
    .action((service: string, flags: Flags & { digest?: string }) =>
      flags.digest === undefined
        ? showList(inProject(service), flags, io)
        : order({ kind: 'confirm', service: inProject(service), digest: flags.digest, by: flags.by }, flags, io),
    )
}

/** As in `skerry`: without a project it is the default one's. */
const inProject = (name: string): string => (name.includes('/') ? name : `${DEFAULT_PROJECT}/${name}`)

function scopeOf(name: string | undefined, { all = false }: Flags): string | null {
  if ((name === undefined) === !all)
    throw new AppError('bad_options', { doing: 'read the arguments', detail: 'expected PROJECT/SERVICE or --all' })
  return name === undefined ? null : inProject(name)
}

function lengthMs(text: string): number {
  if (!durationSchema.safeParse(text).success)
    throw new AppError('bad_options', { doing: 'read --for', detail: 'expected a whole number with ms, s, m, h or d, such as 8h' })
  return Math.min(durationMs(text), Number.MAX_SAFE_INTEGER / 2) // so that the agent can say what is wrong with more than that
}

async function order(order: EdgeOrder, { data }: Flags, { out }: EdgeIo): Promise<void> {
  const answer = await orderRunningAgent(resolve(data), order)
  if (answer === null) throw notRunning(data)
  if (answer.kind === 'refused')
    throw new AppError('bad_options', {
      doing: order.kind.replace('_', '-'),
      detail: answer.message,
      remedy: 'Run `skerry-agent status` to list the services.',
    })
  out(`${answer.message}\n`)
}

async function showList(service: string, { data }: Flags, { out }: EdgeIo): Promise<void> {
  const report = await askRunningAgent(resolve(data))
  if (report === null) throw notRunning(data)
  const refusal = report.services.find(({ name }) => name === service)?.status?.refusal
  if (refusal === undefined) {
    out(`No deletion of ${service} waits for confirmation.\n`)
    return
  }
  const more = refusal.count > refusal.names.length ? `  and ${refusal.count - refusal.names.length} more\n` : ''
  out(
    `Deletions of ${service} that wait for confirmation: ${refusal.why}\n${refusal.names.map((name) => `  ${nameWithLoss(name)}\n`).join('')}${more}` +
      `To confirm exactly these: skerry-agent confirm ${service} --digest ${refusal.list ?? refusal.digest}\n`,
  )
}

const notRunning = (data: string): AppError =>
  new AppError('bad_options', {
    doing: 'ask the agent',
    detail: `no agent runs on ${resolve(data)}`,
    remedy: 'Start the agent, or set --data or SKERRY_DATA. For an agent in a pod, run the command inside the pod.',
  })
