// A corpus like a large site: services of about forty objects, 27 kinds, a median document of 1.5 kB, random names,
// images, digests and data, so that no object is a copy of another and compression is as in production. The same seed
// gives the same bytes.
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { type K8sObject, refOf } from '../../shared/kube/object.ts'
import { objectRowId } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { CORPUS_KINDS, corpusSpec } from './corpus-kinds.ts'
import { createFaker, type Faker } from './faker.ts'

export interface CorpusService {
  id: ServiceId
  /** Row id → canonical JSON. */
  objects: Map<string, string>
  /** The document of its `service/…` row. */
  doc: string
}

const OBJECTS_EACH = 40

export function corpusServices(objects: number, seed: number): CorpusService[] {
  const random = seededRandom(seed)
  const fake = createFaker(random)
  const services: CorpusService[] = []
  for (let left = objects; left > 0; left -= OBJECTS_EACH) {
    const id = { project: fake.pick(PROJECTS), service: `${fake.name()}-${fake.hex(4)}` }
    services.push(corpusService(id, Math.min(left, OBJECTS_EACH), random, fake))
  }
  return services
}

const PROJECTS = ['edge', 'retail', 'telemetry', 'payments', 'platform', 'video', 'kiosk', 'warehouse']

function corpusService(id: ServiceId, count: number, random: Random, fake: Faker): CorpusService {
  const objects = new Map<string, string>()
  while (objects.size < count) {
    const object = corpusObject(id, random, fake)
    objects.set(objectRowId(id, refOf(object)), canonicalJson(object))
  }
  return { id, objects, doc: serviceRowDoc(objects, fake.hex(40)) }
}

export function serviceRowDoc(objects: ReadonlyMap<string, string>, commit: string): string {
  return canonicalJson({ commit, digest: setDigest(objects), count: objects.size, sync: syncOptionsSchema.parse({}), protect: false })
}

function corpusObject(id: ServiceId, random: Random, fake: Faker): K8sObject {
  const kind = fake.pick(WEIGHTED_KINDS)
  const name = `${fake.name()}-${fake.hex(5)}`
  const labels = {
    'app.kubernetes.io/name': id.service,
    'app.kubernetes.io/instance': `${id.service}-${fake.hex(3)}`,
    'app.kubernetes.io/component': fake.name(),
    'app.kubernetes.io/part-of': id.project,
    'app.kubernetes.io/version': fake.version(),
    'app.kubernetes.io/managed-by': 'Helm',
    'helm.sh/chart': `${fake.name()}-${fake.version()}`,
  }
  const annotations = {
    'checksum/config': fake.hex(64),
    'meta.helm.sh/release-name': `${fake.name()}-${fake.hex(4)}`,
    'meta.helm.sh/release-namespace': fake.name(),
    'example.com/source': `https://git.example/${id.project}/${fake.name()}.git//${fake.name()}/${fake.name()}.yaml`,
    'example.com/owner': `${fake.name()}@${fake.name()}.example`,
    ...(random() < 0.6 ? { 'example.com/description': fake.sentence(10) } : {}),
  }
  const metadata = { name, ...(kind.cluster ? {} : { namespace: `${id.project}-${id.service}`.slice(0, 63) }), labels, annotations }
  return { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...corpusSpec(kind.kind, { name, labels, fake, random }) } as K8sObject
}

const WEIGHTED_KINDS = CORPUS_KINDS.flatMap((kind) => Array.from({ length: kind.weight }, () => kind))
