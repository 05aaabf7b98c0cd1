// Appends events and delivers notifications until it is killed; prints the cluster of each event that is committed.
import { fleetEvent } from '../../server/fleet/fleet-event.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { openPostgresStore, openSqliteStore } from '../../server/store/kysely-store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { notifierOn } from './notify-kit.ts'

const [at = '', life = ''] = process.argv.slice(2)
const options = { random: seededRandom(1), clock: systemClock }
const store = at.startsWith('postgres')
  ? await openPostgresStore({ target: parsePostgresUrl(at) }, options)
  : await openSqliteStore(at, options)
void notifierOn(store).run(new AbortController().signal)
for (let count = 0; ; count++) {
  const cluster = `${life}-${count}`
  await store.appendEvents([
    fleetEvent(
      Date.now(),
      { type: 'Warning', reason: 'Contested', message: 'again' },
      { cluster, service: { project: 'shop', service: 'web' } },
    ),
  ])
  process.stdout.write(`${cluster}\n`)
  await Bun.sleep(40)
}
