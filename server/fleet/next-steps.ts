// The next step of a person for a state that an agent reports with a reason. Pure. For a reason that the catalogue does
// not have, the next step is to look at the objects.
import { wordsOf } from '../../shared/runtime/messages.ts'
import { REPORTED_STEPS } from '../messages/status-messages.ts'

interface Place {
  project: string
  service: string
  cluster: string
}

const isListed = (reason: string): reason is keyof typeof REPORTED_STEPS => Object.hasOwn(REPORTED_STEPS, reason)

/** Null if there is none of its own. */
export const nextStep = (reason: string, place: Place): string | null =>
  isListed(reason) ? wordsOf(REPORTED_STEPS[reason].text, place) : null
