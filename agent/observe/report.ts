// The content of `skerry-agent status`: all facts that this site knows by itself, with or without a reachable server.
import { z } from 'zod'
import { cursorText } from '../../shared/crdt/position.ts'
import { type ServiceStatus, serviceStatusSchema } from '../../shared/model/status.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import type { Replica } from '../replica/replica.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { SyncLoop } from '../sync/sync-loop.ts'

export const linkReportSchema = z.object({
  server: z.string(),
  /** In words: connected, unreachable, superseded, … */
  state: z.string(),
  sinceMs: z.number(),
  lastContactMs: z.number().nullable(),
  /** When the server last signed that this replica is at its head (PR7). Null means not since the agent started. */
  headSignedMs: z.number().nullable().catch(null),
  error: z.object({ code: z.string(), message: z.string(), remedy: z.string() }).nullable(),
  /** A page in parts; null without one. */
  parts: z.object({ have: z.number(), of: z.number(), bytes: z.number() }).nullable(),
  /** Every byte is paid for. */
  metered: z.boolean(),
  /** The wait of the next poll. */
  waitSeconds: z.number(),
  /** For a day (UTC); 0 is none. */
  budgetBytes: z.number(),
  /** Since the agent started. */
  bytesSent: z.number(),
  bytesReceived: z.number(),
  requests: z.number(),
})
export type LinkReport = z.infer<typeof linkReportSchema>

export function linkReport(server: string, status: ReturnType<SyncLoop['status']>): LinkReport {
  const { state, sinceMs, lastContactMs, headSignedMs, failure, traffic, parts, metered, today, waitSeconds } = status
  return {
    ...{ server, state, sinceMs, lastContactMs, headSignedMs, parts, metered, waitSeconds },
    error: failure === null ? null : { code: failure.code, message: failure.message, remedy: failure.remedy },
    budgetBytes: today.budgetBytes,
    bytesSent: traffic.sentBytes,
    bytesReceived: traffic.receivedBytes,
    requests: traffic.requests,
  }
}

export const agentReportSchema = z.object({
  running: z.boolean(),
  version: z.string(),
  clusterId: z.string().nullable(),
  agentId: z.string().nullable(),
  incarnation: z.number().nullable(),
  /** Fingerprint of the key to which rows are sealed. Null means none was made. */
  recipient: z.string().nullable().catch(null),
  /** The server seals to this one instead. Null means that it does not. */
  foreignRecipient: z.string().nullable().catch(null),
  link: linkReportSchema.nullable(),
  enforcement: z.object({ state: z.string(), message: z.string() }),
  replica: z.object({ position: z.string().nullable(), epoch: z.number(), rows: z.number(), verified: z.boolean() }).nullable(),
  /** Why nothing can be written. Null means that it can (RP4). */
  disk: z.string().nullable().catch(null),
  /** Results of comparing watched kinds with lists since the agent started (LS6). */
  resync: z.object({ compared: z.number(), differences: z.number() }).nullable().catch(null),
  /** LX1. Null means that the site has none, or no agent runs. */
  policy: z.object({ file: z.string(), rules: z.string(), problem: z.string().nullable() }).nullable().catch(null),
  /** Age keys of the site that open SOPS files, without the keys themselves. Null means no row needed them yet. */
  ageKeys: z
    .object({ recipients: z.array(z.string()), problems: z.array(z.string()) })
    .nullable()
    .catch(null),
  outboxDepth: z.number(),
  /** Over the link to the server since midnight UTC, headers included, without TLS and TCP. */
  todayBytes: z.number(),
  services: z.array(z.object({ name: z.string(), status: serviceStatusSchema.nullable() })),
})
export type AgentReport = z.infer<typeof agentReportSchema>

export interface ReportParts {
  running: boolean
  version: string
  state: AgentState
  recipient?: string | null
  foreignRecipient?: string | null
  replica: Replica | null
  link: LinkReport | null
  enforcement: { state: string; message: string }
  disk: string | null
  resync: AgentReport['resync']
  policy?: AgentReport['policy']
  ageKeys?: AgentReport['ageKeys']
  todayBytes: number
}

export function agentReport({
  running,
  version,
  state,
  recipient = null,
  foreignRecipient = null,
  replica,
  link,
  enforcement,
  disk,
  resync,
  policy = null,
  ageKeys = null,
  todayBytes,
}: ReportParts): AgentReport {
  const identity = state.identity()
  const position = replica?.position() ?? null
  const names = new Set([...(replica?.services() ?? []), ...state.services()].map(serviceKey))
  return {
    running,
    version,
    clusterId: identity?.clusterId ?? null,
    agentId: identity?.agentId ?? null,
    incarnation: identity?.incarnation ?? null,
    recipient,
    foreignRecipient,
    link,
    enforcement,
    disk,
    resync,
    policy,
    ageKeys,
    replica:
      replica === null
        ? null
        : { position: position && cursorText(position), epoch: replica.epoch(), rows: replica.rowCount(), verified: replica.verified() },
    outboxDepth: state.outboxDepth(),
    todayBytes,
    services: [...names].sort().map((name) => ({ name, status: lastStatus(state, name) })),
  }
}

function lastStatus(state: AgentState, key: string): ServiceStatus | null {
  const parsed = serviceStatusSchema.safeParse(state.lastReported('service', key))
  return parsed.success ? parsed.data : null
}
