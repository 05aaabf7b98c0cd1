// Which resource an object of a kind is applied through, where discovery lists several.
import { expect, test } from 'bun:test'
import type { ApiResource, Cluster } from '../../agent/cluster/cluster.ts'
import { ServedKinds } from '../../agent/reconcile/snapshot/watch/served-kinds.ts'

const ALL = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']
const template = (plural: string, verbs: string[], version = 'v1'): ApiResource => ({
  group: 'template.openshift.io',
  version,
  kind: 'Template',
  plural,
  namespaced: true,
  verbs,
})
const PROCESSED = template('processedtemplates', ['create'])
const TEMPLATES = template('templates', ALL)

test.each<[string, ApiResource[], string, string[]]>([
  ['the second plural can be applied', [PROCESSED, TEMPLATES], 'templates', ['processedtemplates v1', 'templates v1']],
  ['the first plural can be applied', [TEMPLATES, PROCESSED], 'templates', ['processedtemplates v1', 'templates v1']],
  ['none can', [PROCESSED], 'processedtemplates', ['processedtemplates v1']],
  ['another version of a plural', [TEMPLATES, template('templates', ALL, 'v1beta1')], 'templates', ['templates v1']],
])('KA10 of a kind with several resources: %s', async (_, resources, applied, all) => {
  const kinds = new ServedKinds({ discover: async () => ({ staleGroups: [], resources }) } as unknown as Cluster)
  await kinds.refresh()
  const { group, kind } = TEMPLATES
  expect(kinds.find(group, 'v1', kind)).toMatchObject({ kind: 'served', resource: { plural: applied } })
  expect(kinds.findAny(group, 'v9', kind)).toMatchObject({ kind: 'served', resource: { plural: applied } })
  const shown = kinds.all().map(({ plural, version }) => `${plural} ${version}`)
  expect(shown.sort()).toEqual(all)
})
