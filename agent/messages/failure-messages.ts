// Texts of requests to the API server that failed without an answer, or whose answer cannot be used. A status quotes
// them; its own text adds the next step where there is none here.
import { statusesOf, type Table, textsOf } from '../../shared/runtime/messages.ts'

export const FAILURES = {
  UntrustedCertificate: {
    text: ({ address, code }: { address: string; code: string }) =>
      `the certificate of ${address} was refused (${code}): it is not signed by the certificate authority in the credentials, is not for this name, or has expired`,
  },
  no_answer: { text: ({ address, failure }: { address: string; failure: string }) => `no answer from ${address}: ${failure}` },
  status_alone: { text: ({ code }: { code: number }) => `HTTP ${code} without a message` },
  no_answer_in_time: { text: ({ seconds }: { seconds: number }) => `no answer within ${seconds} s` },
  TooManyWatches: {
    text: ({ watches }: { watches: number }) => `the agent has ${watches} open watches, which is the limit`,
    next: 'reduce the kinds that its services use',
  },
  Cut: { text: ({ cuts }: { cuts: number }) => `the API server closed the watch ${cuts} times in a row right after it was opened` },
  Stopped: { text: 'the agent stopped the list' },
  'Unreadable.object': { text: 'the answer is not a Kubernetes object' },
  'Unreadable.list': { text: ({ kind }: { kind: string }) => `the answer is not a list of ${kind}` },
  'Unreadable.line': { text: ({ chars }: { chars: number }) => `a line of the watch is not an event: ${chars} characters` },
  'Unreadable.event': {
    text: ({ type, chars }: { type: string; chars: number }) =>
      `an event of the watch has no Kubernetes object: ${type}, ${chars} characters`,
  },
  'Unreadable.eventType': { text: ({ type }: { type: string }) => `an event of the watch has an unknown type: ${type}` },
  'Unreadable.bookmark': { text: 'a bookmark of the watch has no resourceVersion' },
  // Why a value of a ConfigMap of the site is not reported.
  value_too_long: { text: ({ most }: { most: number }) => `the value has more than ${most} characters` },
  values_too_long: { text: ({ most }: { most: number }) => `all reported values together have more than ${most} characters` },
} satisfies Table

export const failureText = textsOf(FAILURES)
export const failureSays = statusesOf(FAILURES)
