// The job queue: one thread publishes a list of jobs and works on it with the others. Round, count
// and next index share one atomic word, so a thread that wakes late can never take a job twice.

import { backward } from './backward'
import { forward } from './forward'
import {
  BELL, DONE, FAULT, JOB_BACKWARD, JOB_FORWARD, JOB_LIST, JOB_NEXT, JOB_NORM, JOB_PACK, JOB_REDUCE,
  JOB_UPDATE, QUEUE, QUIT,
} from './layout'
import { pack, reduce, sumSquares, update } from './optimizer'

const SECOND: i64 = 1000000000

function execute(job: usize): void {
  const kind = load<i32>(job)
  if (kind == JOB_FORWARD) forward(job)
  else if (kind == JOB_BACKWARD) executeChain(job)
  else if (kind == JOB_REDUCE) reduce(job)
  else if (kind == JOB_NORM) sumSquares(job)
  else if (kind == JOB_UPDATE) update(job)
  else if (kind == JOB_PACK) pack(job)
  else unreachable()
}

/** The jobs of one lane follow each other on one thread: their sums have one order. */
function executeChain(job: usize): void {
  backward(job, true)
  while (load<u32>(job, JOB_NEXT) != 0) {
    job = <usize>load<u32>(job, JOB_NEXT)
    backward(job, false)
  }
}

/** Takes jobs until none is left. */
function work(): void {
  while (true) {
    const state = atomic.load<u64>(QUEUE)
    const next = <u32>(state & 0xffff)
    if (next >= <u32>(state >> 16 & 0xffff)) return
    if (atomic.cmpxchg<u64>(QUEUE, state, state + 1) != state) continue
    execute(<usize>load<u32>(JOB_LIST + (next << 2)))
    atomic.add<i32>(DONE, 1)
    atomic.notify(DONE, 1)
  }
}

/** Runs the first `count` jobs of the list on `threads` threads; false when a thread has failed. */
export function run(count: i32, threads: i32): bool {
  atomic.store<i32>(DONE, 0)
  const round = (atomic.load<u64>(QUEUE) >> 32) + 1
  atomic.store<u64>(QUEUE, (round << 32) | (<u64>count << 16))
  const helpers = min(count, threads) - 1
  if (helpers > 0) {
    atomic.add<i32>(BELL, 1)
    atomic.notify(BELL, helpers)
  }
  work()
  while (true) {
    const done = atomic.load<i32>(DONE)
    if (done == count) return true
    if (atomic.load<i32>(FAULT) != 0) return false
    atomic.wait<i32>(DONE, done, SECOND)
  }
}

/** A helper's main loop: works when notified, sleeps otherwise, ends when told to. */
export function serve(): void {
  while (atomic.load<i32>(QUIT) == 0) {
    const bell = atomic.load<i32>(BELL)
    work()
    if (atomic.load<i32>(QUIT) != 0) return
    atomic.wait<i32>(BELL, bell, -1)
  }
}
