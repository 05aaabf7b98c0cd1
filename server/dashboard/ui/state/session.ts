// The person at the screen, as far as the server said who it is. Apart from credential.ts, which needs no library.
import { signal } from '@preact/signals'
import type { WhoamiAnswer } from '../../../../shared/model/views.ts'
import type { Refusal } from './api.ts'

export type Person = WhoamiAnswer

/** `failed`: there is a credential, and nobody could say whose it is. */
type Session =
  | { state: 'starting' }
  | { state: 'out'; why: string | null }
  | { state: 'failed'; refusal: Refusal }
  | { state: 'in'; person: Person }

export const session = signal<Session>({ state: 'starting' })
