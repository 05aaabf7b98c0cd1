// Random names, images and text for benchmark corpora; seeded, so that a run can be repeated.
import type { Random } from '../../shared/runtime/random.ts'

export interface Faker {
  pick<T>(from: readonly T[]): T
  int(below: number): number
  hex(digits: number): string
  base64(characters: number): string
  /** Two words. */
  name(): string
  version(): string
  image(): string
  sentence(words: number): string
}

const SYLLABLES =
  'ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu za bra cle dri flo gru pla ster tron lex mar nor vin dex qua sol tem ful'.split(
    ' ',
  )
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

export function createFaker(random: Random): Faker {
  const int = (below: number) => Math.floor(random() * below)
  const pick = <T>(from: readonly T[]): T => from[int(from.length)] as T
  const text = (alphabet: string, length: number) => Array.from({ length }, () => alphabet[int(alphabet.length)]).join('')
  const word = () => Array.from({ length: 2 + int(2) }, () => pick(SYLLABLES)).join('')
  const hex = (digits: number) => text('0123456789abcdef', digits)
  const version = () => `${int(9)}.${int(40)}.${int(20)}`
  return {
    pick,
    int,
    hex,
    base64: (characters) => text(BASE64, characters),
    name: () => `${word()}-${word()}`,
    version,
    image: () => `images.example/${word()}/${word()}:${version()}@sha256:${hex(64)}`,
    sentence: (words) => Array.from({ length: words }, word).join(' '),
  }
}
