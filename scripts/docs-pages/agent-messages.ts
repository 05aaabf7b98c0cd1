// The catalogue of the agent, for its page.
import { DELETION } from '../../agent/messages/deletion-messages.ts'
import { NEWS, WARNINGS } from '../../agent/messages/event-messages.ts'
import { EXPLANATIONS, JOB_ENDS } from '../../agent/messages/explanation-messages.ts'
import { FAILURES, OBJECT, OBJECT_PARTS } from '../../agent/messages/object-messages.ts'
import { ANSWER_NOTES, QUESTION_REFUSALS } from '../../agent/messages/question-messages.ts'
import { ORDER, SERVICE, SERVICE_PARTS } from '../../agent/messages/service-messages.ts'
import { ENFORCEMENT, ORDER_REFUSALS, PROBLEMS, SITE_PARTS, TAKEOVERS } from '../../agent/messages/site-messages.ts'
import { STATUS_WARNINGS, STATUS_WORDS } from '../../agent/messages/status-messages.ts'
import type { Table } from '../../shared/runtime/messages.ts'

/** Every table, by the heading of its section. */
export const AGENT_CATALOGUE: Readonly<Record<string, Table>> = {
  'Statuses of objects': OBJECT,
  'Parts of statuses of objects': OBJECT_PARTS,
  'Failed requests to the API server': FAILURES,
  'Explanations of objects that are not healthy': EXPLANATIONS,
  'Ends of Jobs': JOB_ENDS,
  'Statuses of services': SERVICE,
  'Hooks, phases and waves': ORDER,
  'Parts of statuses of services': SERVICE_PARTS,
  Deletions: DELETION,
  'Events of type Normal': NEWS,
  'Events of type Warning': WARNINGS,
  'State of enforcement': ENFORCEMENT,
  'Problems of an agent': PROBLEMS,
  'Warnings of `skerry-agent status`': STATUS_WARNINGS,
  'Lines of `skerry-agent status`': STATUS_WORDS,
  'Refusals of local commands': ORDER_REFUSALS,
  'Answers to a takeover': TAKEOVERS,
  'Parts of these texts': SITE_PARTS,
  'Refusals of questions': QUESTION_REFUSALS,
  'Notes in answers to questions': ANSWER_NOTES,
}
