// A program of its own that sends the first requests. It is so small that it runs while the code of the page is still
// on its way.
import { sendFirst } from './state/first-requests.ts'

sendFirst()
