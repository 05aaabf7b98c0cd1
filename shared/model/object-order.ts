// In which phase and wave the objects of a service go in one cluster, for a page that shows them in that order.
import { z } from 'zod'
import { PHASES } from '../kube/waves.ts'

const text = z.string()
export const objectOrderSchema = z.object({
  group: text,
  kind: text,
  namespace: text,
  name: text,
  wave: z.number().int(),
  /** The phases of a hook. Absent means an ordinary object. */
  phases: z.array(z.enum(PHASES)).exactOptional(),
})
export type ObjectOrder = z.infer<typeof objectOrderSchema>
/** Objects that have a wave or are hooks; all others are ordinary ones of wave 0. */
export const objectOrdersSchema = z.object({ items: z.array(objectOrderSchema) })
export type ObjectOrders = z.infer<typeof objectOrdersSchema>
