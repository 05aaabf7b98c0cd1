import { describe, expect, test } from 'bun:test'
import { APPLY_PLAINLY, type ApplyOptions, type ApplyOptionsRead, readApplyOptions } from '../../shared/kube/apply-options.ts'

const OURS = 'skerry.dev/sync-options'
const ARGO = 'argocd.argoproj.io/sync-options'
const PLURAL = 'deployment.plural.sh/sync-options'
const FLUX = 'kustomize.toolkit.fluxcd.io'
const options = (change: Partial<ApplyOptions> = {}): ApplyOptionsRead => ({ kind: 'options', options: { ...APPLY_PLAINLY, ...change } })

describe('how one object is applied', () => {
  test.each<[string, Record<string, string> | undefined, Partial<ApplyOptions>]>([
    ['AO1 no annotation at all', undefined, {}],
    ['AO1 annotations of other meaning', { 'example.com/note': 'Force' }, {}],
    ['AO1 Replace', { [OURS]: 'Replace' }, { replace: true }],
    ['AO1 Replace and Force, with spaces and an empty word', { [OURS]: ' Replace , Force,' }, { replace: true, recreate: 'own' }],
    ['AO1 IfNotPresent', { [OURS]: 'IfNotPresent' }, { touch: 'ifAbsent' }],
    ['AO1 Ignore does less than IfNotPresent', { [OURS]: 'Ignore,IfNotPresent' }, { touch: 'never' }],
    ['AO1 an empty value', { [OURS]: '' }, {}],
    ['AO2 Argo: Replace and Force', { [ARGO]: 'Replace=true,Force=true' }, { replace: true, recreate: 'foreign' }],
    ['AO2 Argo: words that ask for nothing else', { [ARGO]: 'Validate=false,ServerSideApply=true,SkipDryRunOnMissingResource=true' }, {}],
    ['AO2 Argo: words about pruning', { [ARGO]: 'Prune=false,Delete=false,PruneLast=true' }, {}],
    ['AO2 Argo: false is not true', { [ARGO]: 'Replace=false,Force=false' }, {}],
    ['AO2 Argo: a word that nobody knows', { [ARGO]: 'Repalce=true' }, {}],
    ['AO2 Plural', { [PLURAL]: 'Force=true,Replace=true' }, { replace: true, recreate: 'foreign' }],
    ['AO2 Flux: force', { [`${FLUX}/force`]: 'Enabled' }, { recreate: 'foreign' }],
    ['AO2 Flux: force disabled', { [`${FLUX}/force`]: 'disabled' }, {}],
    ['AO2 Flux: IfNotPresent', { [`${FLUX}/ssa`]: 'IfNotPresent' }, { touch: 'ifAbsent' }],
    ['AO2 Flux: Ignore', { [`${FLUX}/ssa`]: 'Ignore' }, { touch: 'never' }],
    ['AO2 Flux: Merge and Override are plain applies', { [`${FLUX}/ssa`]: 'Merge' }, {}],
    ['AO2 Flux: reconcile disabled', { [`${FLUX}/reconcile`]: 'disabled' }, { touch: 'never' }],
    ['AO2 our Force beside a foreign one', { [ARGO]: 'Force=true', [OURS]: 'Force' }, { recreate: 'own' }],
  ])('%s', (_, annotations, expected) => expect(readApplyOptions(annotations)).toEqual(options(expected)))

  test.each([
    ['Repalce', 'Replace'],
    ['force', 'Force'],
    ['Replace=true', 'Replace'],
    ['Create', 'Replace'],
    ['ifnotpresent', 'IfNotPresent'],
    ['ignored', 'Ignore'],
  ])('AO1 our annotation says %s: wrong, and %s is named', (word, name) => {
    const read = readApplyOptions({ [OURS]: word })
    expect(read).toMatchObject({ kind: 'wrong', message: expect.stringContaining(`did you mean ${name}?`) })
  })

  test('AO1 equal options are one value, however many objects have them', () => {
    const read = () => {
      const result = readApplyOptions({ [OURS]: 'Replace' })
      return result.kind === 'options' ? result.options : null
    }
    expect(read()).toBe(read())
    expect(readApplyOptions({ [ARGO]: 'Validate=false' })).toEqual(options())
  })
})
