import { expect, test } from 'bun:test'
import { failureOf } from '../../agent/cluster/api-failure.ts'
import { withoutDocuments } from '../../agent/cluster/failure-text.ts'

test.each([
  ['nothing is quoted', 'jobs "a" is forbidden: no', 'jobs "a" is forbidden: no'],
  ['a plain value', 'spec.x: Invalid value: "abc": must be a number', 'spec.x: Invalid value: "abc": must be a number'],
  [
    'a document with brackets in its texts, and what follows',
    '[spec.template: Invalid value: {"Env":[{"Name":"TOKEN","Value":"se}: c\\"ret"}]}: field is immutable, spec.y: Invalid value: null: field is immutable]',
    '[spec.template: Invalid value: {…}: field is immutable, spec.y: Invalid value: null: field is immutable]',
  ],
  ['a list', 'rules: Invalid value: [{"a":"1"}]: bad', 'rules: Invalid value: […]: bad'],
  ['one that was cut off', 'x: Invalid value: {"a":"secr', 'x: Invalid value: {…}'],
])('KA31 what the API server says: %s', (_, said, expected) => expect(withoutDocuments(said)).toBe(expected))

test('KA31 a refused Job does not say its environment', () => {
  const message = 'Job.batch "j" is invalid: spec.template: Invalid value: {"Env":[{"Name":"TOKEN","Value":"secret"}]}: field is immutable'
  const details = {
    causes: [{ reason: 'FieldValueInvalid', message: 'Invalid value: {"Env":[]}: field is immutable', field: 'spec.template' }],
  }
  const body = { kind: 'Status', reason: 'Invalid', code: 422, message, details }
  expect(failureOf({ status: 422, body, text: '', retryAfter: null, plural: 'jobs' })).toMatchObject({
    kind: 'immutable',
    message: 'Job.batch "j" is invalid: spec.template: Invalid value: {…}: field is immutable',
  })
})
