const OM: string = __OM__;

export default function (): void {
    void OM;
}
