// For tests of environments and of whatever stands on Espalier.

export { type CheckOptions, type CheckResult, checkEnvironment } from './environments/check.ts'
export { replyOf } from './environments/reply.ts'
