// A process that writes into a fleet store until it is killed: transactions that note what they change, some of them
// undone. What it wrote is in the store itself, in the same transactions: `api_tokens` has a row for each note.
import { connectPostgres } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { createStoreDb, type StoreDb } from '../../server/store/store-db.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'

/** One transaction of one to three notes; one in four is undone at its end. */
export async function writeSome(db: StoreDb, name: string, random: Random): Promise<void> {
  const undone = random() < 0.25
  const count = 1 + Math.floor(random() * 3)
  const wait = random() < 0.1 ? 2 : 0
  await db
    .write(async ({ sql, changes }) => {
      for (let i = 0; i < count; i++) {
        const id = `${name}-${i}`
        changes.add({ topic: 'token', name: id })
        await sql.insertInto('api_tokens').values({ id, token_hash: id, name, created_ms: 0, expires_ms: 0, replaces: null }).execute()
        if (wait > 0) await systemClock.sleep(wait)
      }
      if (undone) throw new Undone()
    })
    .catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error
    })
}
class Undone extends Error {}

if (import.meta.main) {
  const [url = '', name = '', seed = '1'] = process.argv.slice(2)
  const db = createStoreDb(await connectPostgres({ target: parsePostgresUrl(url) }, systemClock), systemClock)
  const random = seededRandom(Number(seed))
  process.stdout.write('writing\n')
  for (let n = 0; ; n++) await writeSome(db, `${name}-${n}`, random)
}
