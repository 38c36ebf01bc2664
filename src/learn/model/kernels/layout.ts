// Where things lie in the shared memory: read by the kernels (AssemblyScript) and by the engine
// (TypeScript), so this file holds nothing but numbers that mean the same in both.

/** Tokens per block of the key-value cache. */
export const BLOCK = 16

/** Lanes over which a step's gradient is summed, whatever the number of threads. */
export const LANES = 8

/** Parameters per partial sum of the gradient's norm. */
export const NORM_BLOCK = 4096

// The control words of the job queue (byte addresses).
export const QUEUE = 1024
export const BELL = 1032
export const DONE = 1036
export const QUIT = 1040
export const FAULT = 1044
export const JOB_LIST = 2048
export const JOB_LIMIT = 4096

/** The plan: the model's shape and where its arrays lie (byte address). */
export const PLAN = 1152

// Words of the plan, as byte offsets. Offsets of parameters and panels are in bytes too.
export const WIDTH = 0
export const LAYERS = 4
export const HEADS = 8
export const KEY_HEADS = 12
export const HEAD_SIZE = 16
export const HIDDEN = 20
export const VOCABULARY = 24
export const PADDED_VOCABULARY = 28
export const CONTEXT = 32
/** What norms add under the root, and what embeddings are multiplied by: floats. */
export const EPSILON = 36
export const EMBEDDING_SCALE = 40
/** 0 for silu, 1 for gelu by tanh. */
export const ACTIVATION = 44
/** Per layer how many tokens a query sees, 0 for all; itself 0 if no layer has a window. */
export const WINDOWS = 48
/** 1 if the weights in panels are bf16. */
export const HALVES = 52
/** 1 if the weights stay and only the factors of an adapter are trained. */
export const FROZEN = 56
/** What is trained: all weights, or the factors of an adapter. */
export const PARAMETERS = 60
export const PARAMETER_BYTES = 64
/** Where norms and biases count from. */
export const FIXED = 68
export const LAYER_FIXED = 72
export const LAYER_FIXED_STRIDE = 76
export const NORM_1 = 80
export const NORM_2 = 84
export const FINAL_NORM = 88
/** Offsets of what not every model has: 0 if it is missing. */
export const QUERY_NORM = 92
export const KEY_NORM = 96
export const QKV_BIAS = 100
export const OUT_BIAS = 104
export const GATE_UP_BIAS = 108
export const DOWN_BIAS = 112
export const QKV = 116
export const OUT = 120
export const GATE_UP = 124
export const DOWN = 128
/** Rows of the embedding; 0 if they are only in the panels of the head. */
export const EMBEDDING = 132
export const PANELS = 136
export const LAYER_PANELS = 140
export const LAYER_PANEL_STRIDE = 144
export const HEAD_PANELS = 148
export const EMBEDDING_PANELS = 152
export const QKV_PANELS = 156
export const OUT_PANELS = 160
export const GATE_UP_PANELS = 164
export const DOWN_PANELS = 168
export const QKV_TURNED = 172
export const OUT_TURNED = 176
export const GATE_UP_TURNED = 180
export const DOWN_TURNED = 184
export const COSINES = 188
export const SINES = 192
export const SCRATCH = 196
export const SCRATCH_BYTES = 200
export const LANE_GRADIENTS = 204
export const GRADIENT = 208
export const MOMENT_1 = 212
export const MOMENT_2 = 216
export const NORM_SUMS = 220
/** Of the adapter, a multiple of 8; 0 if there is none. */
export const RANK = 224
export const ADAPTER_SCALE = 228
export const ADAPTER_STRIDE = 232
/** Per map of a layer two offsets, of `lora_A` turned and `lora_B` turned; 0 if the map is not changed. */
export const FACTORS = 236

// Kinds of job, the first word of each.
export const JOB_FORWARD = 1
export const JOB_BACKWARD = 2
export const JOB_REDUCE = 3
export const JOB_NORM = 4
export const JOB_UPDATE = 5
export const JOB_PACK = 6

// Words of a forward or backward job, as byte offsets.
export const JOB_TOKENS = 4
export const JOB_IDS = 8
export const JOB_SPANS = 12
export const JOB_SPAN_LIST = 16
export const JOB_ROWS = 20
export const JOB_ROW_LIST = 24
/** Where the activations lie; 0 for the thread's own scratch. */
export const JOB_ACTIVATIONS = 28
/** Where block offsets count from; 0 when spans follow spans of jobs, which need no blocks. */
export const JOB_BLOCKS = 32
/** Where logits go; 0 for a place behind the activations. */
export const JOB_LOGITS = 36
/** What is kept for the backward pass: one of the three below. */
export const JOB_KEEP = 40
/** Where a backward job adds its gradient. */
export const JOB_LANE = 44
/** The next job of the same lane, or 0: one thread takes the whole chain, in order. */
export const JOB_NEXT = 48
/** The first and the last stage that are run. */
export const JOB_FIRST = 52
export const JOB_LAST = 56
/** Gradients of keys and values before the first span, twice: for even and odd layers; 0 if it has none. */
export const JOB_BEFORE = 60
/** Such gradients of other jobs for tokens of this one. */
export const JOB_HEIRS = 64
export const JOB_HEIR_LIST = 68
/**
 * Written by the job itself: where the first layer's queries, keys and values lie, how far apart
 * layers are, and how far odd ones from even ones if two take turns.
 */
export const JOB_PROJECTED = 72
export const JOB_STRIDE = 76
export const JOB_TURN = 80
export const JOB_BYTES = 88

/** Nothing is kept. */
export const KEEP_NOTHING = 0
/** Only what goes into each layer: the rest is computed again. */
export const KEEP_INPUTS = 1
export const KEEP_ALL = 2

// Words of an heir: gradients of some keys and values of this job's tokens that another job computed.
export const HEIR_START = 0
export const HEIR_COUNT = 4
export const HEIR_FROM = 8
/** Bytes from even layers' gradients to odd ones'. */
export const HEIR_STRIDE = 12
export const HEIR_BYTES = 16

// Words of a span: tokens of one sequence inside a job.
export const SPAN_START = 0
export const SPAN_COUNT = 4
export const SPAN_POSITION = 8
/** The sequence's block table, or the span that comes before, 0 if none does. */
export const SPAN_TABLE = 12
/** The job of the span. */
export const SPAN_JOB = 16
export const SPAN_BYTES = 20

// Words of a row: one token whose distribution is wanted.
export const ROW_TOKEN = 0
/** The id whose log-probability is wanted; -1 to sample one. */
export const ROW_TARGET = 4
export const ROW_INVERSE_TEMPERATURE = 8
export const ROW_GREEDY = 12
export const ROW_TOP_K = 16
export const ROW_TOP_P = 20
export const ROW_MIN_P = 24
export const ROW_ID = 28
export const ROW_RANDOM = 32
export const ROW_LOG_SUM = 40
export const ROW_MAXIMUM = 48
export const ROW_LOGPROB = 52
export const ROW_ENTROPY = 56
export const ROW_LOGPROB_GRADIENT = 60
export const ROW_ENTROPY_GRADIENT = 64
export const ROW_BYTES = 72

// Words of the jobs over parameters: a range of bytes, and for updates the numbers of AdamW.
export const RANGE_START = 4
export const RANGE_BYTES = 8
export const RANGE_LANES = 12
export const UPDATE_RATE = 16
export const UPDATE_DECAY = 20
export const UPDATE_BETA_1 = 24
export const UPDATE_BETA_2 = 28
export const UPDATE_EPSILON = 32
export const UPDATE_SCALE = 36
export const UPDATE_CORRECTION_1 = 40
export const UPDATE_CORRECTION_2 = 44
/** A pack job's layer; the number of layers stands for the embedding. */
export const PACK_LAYER = 4
