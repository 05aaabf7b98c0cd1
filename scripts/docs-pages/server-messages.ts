// The catalogue of the server, for its page.

import { QUESTIONS } from '../../server/messages/confirmation-messages.ts'
import { NEWS, WARNINGS } from '../../server/messages/event-messages.ts'
import { CLUSTER, PLACEMENT, REPORTED_STEPS, REPOSITORY, SERVICE, STATUS_PARTS, STEPS } from '../../server/messages/status-messages.ts'
import type { Table } from '../../shared/runtime/messages.ts'

/** Every table, by the heading of its section. */
export const SERVER_CATALOGUE: Readonly<Record<string, Table>> = {
  'Statuses of services': SERVICE,
  'Statuses of services in a cluster': PLACEMENT,
  'Statuses of clusters': CLUSTER,
  'Statuses of repositories': REPOSITORY,
  'Parts of statuses': STATUS_PARTS,
  'Next steps for reasons of the agent': REPORTED_STEPS,
  'Other next steps': STEPS,
  'Reasons of confirmations and removals': QUESTIONS,
  'Events of type Normal': NEWS,
  'Events of type Warning': WARNINGS,
}
