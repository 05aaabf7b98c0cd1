// scripts/bench observe: metrics, questions, notifications and answers. Each part has a file of its own.
import { measureAsking } from './observe-asking.ts'
import { measureNotify } from './observe-notify.ts'
import { measureQuery } from './observe-query.ts'
import { measureScrape } from './observe-scrape.ts'
import { measureWhy } from './observe-why.ts'
import { runParts, type Say } from './parts.ts'

const PARTS = { scrape: measureScrape, asking: measureAsking, notify: measureNotify, query: measureQuery, why: measureWhy }

export const benchObserve = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('observe', PARTS, say, only)
