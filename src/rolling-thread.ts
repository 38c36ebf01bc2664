// What a thread that makes attempts starts with.
import './offers.ts'
import './run/run/threads/worker.ts'
