// The contract on PostgreSQL.
import { openIn, POSTGRES } from '../support/stores.ts'
import { storeContract } from './store.contract.ts'

storeContract('PostgreSQL', () => openIn(POSTGRES))
