/** An exception as Python would raise it: `type` is the name of Python's class, such as `TypeError`. */
export declare class PythonError extends Error {
    readonly type: string;
    constructor(type: string, message: string, options?: ErrorOptions);
}
