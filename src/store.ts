// espalier/store: runs read back, compared and told of.

import './offers.ts'

export { type Row, rowsOf } from './base/core/row.ts'
export { readByTask } from './run/measure/compare.ts'
export { type Comparison, compareRuns } from './run/measure/compare-tasks.ts'
export type { GroupRecord, MemberRecord } from './run/store/group-record.ts'
export { openRunReader, type RunReader, type StoredGroup } from './run/store/store.ts'
export { type RunReport, reportRun } from './run/watch/run-report.ts'
export type { EventRecord } from './run/watch/telemetry/event-record.ts'
