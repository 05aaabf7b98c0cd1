// scripts/bench store: the fleet store under ten thousand clusters, on both engines.
import { runParts, type Say } from './parts.ts'
import { benchBlocks } from './store-blocks.ts'
import { benchFeed, benchFeedPostgres } from './store-feed.ts'
import { benchFollowers, benchFollowersPostgres } from './store-followers.ts'
import { benchIngest, benchIngestPostgres, benchRollups } from './store-ingest.ts'
import { benchQueries, benchQueriesPostgres } from './store-queries.ts'
import { benchStorm } from './store-storm.ts'
import { benchJoins, benchRelabel } from './store-targets.ts'

const PARTS = {
  ingest: benchIngest,
  rollups: benchRollups,
  'ingest-postgres': benchIngestPostgres,
  queries: benchQueries,
  'queries-postgres': benchQueriesPostgres,
  blocks: benchBlocks,
  feed: benchFeed,
  'feed-postgres': benchFeedPostgres,
  followers: benchFollowers,
  'followers-postgres': benchFollowersPostgres,
  storm: benchStorm,
  relabel: benchRelabel,
  joins: benchJoins,
}

export const benchStore = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('store', PARTS, say, only)
