// The text of `skerry-agent status`. Pure: a report in, lines out.
import { cutText } from '../../shared/runtime/cut-text.ts'
import { recipientsText } from '../../shared/sops/parcel.ts'
import { statusWarning, statusWords } from '../messages/status-messages.ts'
import type { AgentReport, LinkReport } from '../observe/report.ts'

/** The state of sync in words; none of them changes enforced objects. */
function linkText({ state, error, parts, lastContactMs }: LinkReport, isJoined: boolean): string {
  switch (state) {
    case 'following':
      return statusWords(lastContactMs === null ? 'link.no_answer' : 'link.connected')
    case 'refetching':
      return statusWords('link.differences')
    case 'fetching_parts':
      return parts === null
        ? statusWords('link.page')
        : statusWords('link.parts', { have: parts.have, parts: parts.of, size: bytesText(parts.bytes) })
    case 'restore_pending':
      return statusWords('link.restore')
    case 'offline':
      if (error?.code === 'disk_full') return statusWords('link.disk_full')
      return statusWords(error === null || error.code === 'server_unreachable' ? 'link.unreachable' : 'link.not_syncing')
    case 'halted':
      if (error?.code === 'link_insecure') return statusWords('link.not_asked')
      return statusWords(isJoined ? 'link.refused' : 'link.not_joined')
    default:
      return state
  }
}

const warningLines = ({ text, next }: ReturnType<typeof statusWarning>): Array<[string, string]> => [
  ['', text],
  ...(next === undefined ? [] : [['next step', next] as [string, string]]),
]

/** Longer than the hour after which the server is asked again, and the longest poll. */
const HEAD_LATE_MS = 2 * 3_600_000

/** PR7: a link that answers and never lets the server's signature through. */
function headLines({ state, sinceMs, headSignedMs }: LinkReport, nowMs: number): Array<[string, string]> {
  if (state !== 'following' || nowMs - (headSignedMs ?? sinceMs) < (headSignedMs === null ? 60_000 : HEAD_LATE_MS)) return []
  return warningLines(
    headSignedMs === null ? statusWarning('head_never') : statusWarning('head_late', { length: age(nowMs - headSignedMs) }),
  )
}

/** Today's traffic, and the consequences of a spent budget. */
function trafficLines({ metered, budgetBytes, waitSeconds }: LinkReport, todayBytes: number): Array<[string, string]> {
  const used = budgetBytes > 0 ? `${bytesText(todayBytes)} of ${bytesText(budgetBytes)} today` : `${bytesText(todayBytes)} today`
  const line: [string, string] = ['traffic', `${used}${metered ? ', metered' : ''}, polls of ${age(waitSeconds * 1_000)}`]
  if (budgetBytes === 0 || todayBytes < budgetBytes) return [line]
  return [line, ...warningLines(statusWarning('budget_spent'))]
}

export function statusText(report: AgentReport, nowMs: number): string {
  const { link, replica } = report
  const lines: Array<[string, string]> = [
    ['agent', report.running ? statusWords('running', { version: report.version }) : statusWords('not_running')],
    ['cluster', clusterText(report)],
    ...(report.recipient === null ? [] : [['recipient', report.recipient] as [string, string]]),
    ...(report.foreignRecipient === null ? [] : warningLines(statusWarning('other_recipient', { other: report.foreignRecipient }))),
    ['enforcement', `${report.enforcement.state}${report.enforcement.message === '' ? '' : `: ${report.enforcement.message}`}`],
  ]
  if (link !== null)
    lines.push([
      'server',
      statusWords('link', {
        server: link.server,
        state: linkText(link, report.clusterId !== null),
        length: age(nowMs - link.sinceMs),
        contact:
          link.lastContactMs === null ? statusWords('no_contact') : statusWords('contact', { length: age(nowMs - link.lastContactMs) }),
      }),
    ])
  else if (report.clusterId !== null) lines.push(['server', statusWords('link.unknown')])
  if (link?.error) lines.push(['', `${link.error.message} (${link.error.code})`], ['next step', link.error.remedy])
  if (link !== null) lines.push(...headLines(link, nowMs), ...trafficLines(link, report.todayBytes))
  else if (report.todayBytes > 0) lines.push(['traffic', statusWords('traffic_stopped', { bytes: bytesText(report.todayBytes) })])
  if (replica !== null) {
    const { rows, position, verified } = replica
    const state = statusWords(verified ? 'replica_verified' : 'replica_damaged')
    lines.push([
      'replica',
      position === null
        ? statusWords('replica_empty')
        : statusWords('replica', { rows, state, position: position.split('.').slice(1, 3).join('.') }),
    ])
  }
  if (report.policy !== null) lines.push(...policyLines(report.policy))
  if (report.ageKeys !== null) lines.push(...ageKeyLines(report.ageKeys))
  if (report.disk !== null) lines.push(['disk', report.disk])
  const { compared, differences } = report.resync ?? { compared: 0, differences: 0 }
  if (compared > 0) lines.push(['resync', statusWords('resync', { compared, differences })])
  lines.push(['outbox', report.outboxDepth === 0 ? statusWords('outbox_empty') : statusWords('outbox', { rows: report.outboxDepth })])
  const head = lines.map(([name, text]) => `${name.padEnd(12)} ${text}`)
  return [...head, '', ...serviceTable(report)].join('\n')
}

const clusterText = ({ clusterId, agentId, incarnation }: AgentReport): string =>
  clusterId === null
    ? statusWords('not_joined')
    : statusWords('joined', { cluster: clusterId, agent: agentId ?? '', incarnation: incarnation ?? 0 })

/** LX4: the line for an unreadable policy file. */
function policyLines({ file, rules, problem }: NonNullable<AgentReport['policy']>): Array<[string, string]> {
  const lines: Array<[string, string]> = [['local policy', `${rules} (${file})`]]
  return problem === null ? lines : [...lines, ...warningLines(statusWarning('policy_unreadable', { problem }))]
}

/** The recipients to encrypt SOPS files to. */
const ageKeyLines = ({ recipients, problems }: NonNullable<AgentReport['ageKeys']>): Array<[string, string]> =>
  [recipients.length === 0 ? statusWords('no_age_keys') : recipientsText(recipients), ...problems].map((text, index) => [
    index === 0 ? 'age keys' : '',
    text,
  ])

type ServiceReport = NonNullable<AgentReport['services'][number]['status']>

/** With the options of a person at the site. */
function serviceMessage(name: string, { message, refusal }: ServiceReport): string {
  const line = message.split('\n')[0] ?? ''
  return refusal === undefined ? line : statusWords('shown_by_confirm', { line, service: name })
}

function serviceTable(report: AgentReport): string[] {
  if (report.services.length === 0) return [noServices(report)]
  const rows = [['SERVICE', 'SYNC', 'HEALTH', 'OBJECTS', 'COMMIT', 'MESSAGE']]
  for (const { name, status } of report.services) {
    rows.push(
      status === null
        ? [name, 'Unknown', 'Unknown', '-', '-', statusWords('service_received')]
        : [
            name,
            status.sync,
            status.health,
            `${status.healthyCount}/${status.objectCount}`,
            status.applied?.commit.slice(0, 8) ?? '-',
            cutText(serviceMessage(name, status)),
          ],
    )
  }
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? '')))) ?? []
  const full = report.services.flatMap(({ name, status }) => {
    const message = status === null ? '' : serviceMessage(name, status)
    return cutText(message) === message ? [] : [`${name}: ${message}`]
  })
  const table = rows.map((row) =>
    row
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell))))
      .join('  ')
      .trimEnd(),
  )
  return full.length === 0 ? table : [...table, '', ...full]
}

function noServices({ clusterId, replica }: AgentReport): string {
  if (clusterId === null) return statusWords('no_services.not_joined')
  return statusWords(replica?.position == null ? 'no_services.nothing' : 'no_services.none')
}

/** `640 B`, `12.3 kB`, `1.5 MB`: thousands, as tariffs count. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  if (bytes < 999_950) return `${(bytes / 1_000).toFixed(1)} kB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** `850 ms`, `12 s`, `4 min`, `3 h`, `2 d`: the largest unit that fits. */
export function age(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const steps: Array<[number, string]> = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ]
  for (const [unit, name] of steps) if (ms >= unit) return `${Math.floor(ms / unit)} ${name}`
  return '0 s'
}
