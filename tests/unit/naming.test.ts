// The matcher of messages: values count, words do not.
import { expect, test } from 'bun:test'
import { naming } from '../support/naming.ts'

const TEXT = 'chart shop of http://a.example/x: no version in ^7;\nthe newest are: 2.0.0, 1.10.0 (HTTP 503)'

test.each([
  ['values in any order and on any line', ['2.0.0, 1.10.0', 'chart shop', '^7', 503], true],
  ['signs that a pattern would read', ['(HTTP 503)', 'http://a.example/x:'], true],
  ['one value that is not there', ['chart shop', '^8'], false],
  ['a dot is no sign of a pattern', ['http:..a'], false],
  ['a part of a number', [50], false],
  ['a part of a word', ['sho'], false],
])('%s', (_, values, isThere) => {
  if (isThere) expect(TEXT).toEqual(naming(...values))
  else expect(TEXT).not.toEqual(naming(...values))
})
