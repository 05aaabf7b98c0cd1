// Revisions in the words that people read.
import { expect, test } from 'bun:test'
import { revisionWords, shortRevision } from '../../shared/model/revision-text.ts'

const SHA = 'ab12cd34'.repeat(8)

test.each([
  ['3f2c1a9b'.repeat(5), '3f2c1a9b', 'commit 3f2c1a9b'],
  [`6.5.2 sha256:${SHA}`, '6.5.2', 'chart 6.5.2'],
  ['v1.2.3-rc.1+b', 'v1.2.3-rc.1+b', 'chart v1.2.3-rc.1+b'],
  [`sha256:${SHA}`, 'sha256:ab12cd34', 'artifact sha256:ab12cd34'],
  ['c2', 'c2', 'commit c2'],
])('CL14 %s is shown as %s and told as %s', (text, short, words) =>
  expect([shortRevision(text), revisionWords(text)]).toEqual([short, words]),
)
