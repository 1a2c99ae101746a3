const OM = __OM__

export const Om = async () => {
    void OM
    return {}
}
