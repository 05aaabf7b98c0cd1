// The members that every resource has in an answer of the admin API.
import { z } from 'zod'
import { API_VERSION } from './constants.ts'

const ms = z.number().int()

const metadata = z.object({
  name: z.string(),
  /** Absent for clusters, projects, and health rules of the whole fleet. */
  project: z.string().optional(),
  labels: z.record(z.string(), z.string()),
  uid: z.string(),
  generation: ms,
  version: ms,
  createdMs: ms,
  updatedMs: ms,
  /** Set while removal orders of a deleted service are still being carried out. */
  deletingMs: ms.optional(),
})

export const resourceHead = { apiVersion: z.literal(API_VERSION), metadata }
